// Receives the sessions that have ended.

#ifndef TIMECACHED_CLIENT_EXAMPLES_SESSION_WATCH_H_
#define TIMECACHED_CLIENT_EXAMPLES_SESSION_WATCH_H_

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/examples/session.h"
#include "timecache/client.h"
#include "timecache/watcher.h"

namespace timecache::sessionize {

// Watches a namespace of sessions, and hands each that ends to a callback, in
// the order of the events, on a thread of its own.
//
// A session ends by expiry; an entry that died otherwise, or is no session, is
// warned about. A watch whose connection breaks goes on where it was. One that
// loses an event has failed, as it can no longer report every session: events
// that the server no longer retains, a server that was restarted, or one that
// is away for longer than `patience`. An instance is thread-safe.
class SessionWatch {
 public:
  struct Callbacks {
    // A session has ended. An error fails the watch.
    std::function<absl::Status(const EndedSession& ended)> on_end;
    // The sessions passed to on_end may be shown now: no more have arrived yet.
    std::function<absl::Status()> on_pause;
    std::function<void(const std::string& what)> on_warning;
  };

  // Watches the client's namespace, from its oldest retained event or from now.
  SessionWatch(const Client& client, WatchStart start, Callbacks callbacks,
               absl::Duration patience = absl::Seconds(30));

  // Waits until every session that ended at or before this moment was reported,
  // or the watch has failed; absl::InfinitePast() waits until the watch is
  // established.
  absl::Status Await(absl::Time watermark);

  // Why the watch has failed, if it has.
  absl::Status status() const;
  // Sessions reported.
  uint64_t told() const;

 private:
  void Take(const WatchBatch& batch);
  absl::Status Deliver(const WatchBatch& batch);
  void EndureBreak(const absl::Status& why);
  void Fail(const absl::Status& why);

  const std::string ns_;
  const Callbacks callbacks_;
  const absl::Duration patience_;
  // Of the break that lasts; on this machine's clock. The watch's thread's.
  absl::Time broken_since_ = absl::InfiniteFuture();

  mutable absl::Mutex mu_;
  bool stands_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time watermark_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  uint64_t told_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mu_);

  WatchThread thread_;  // Last: it calls back into the rest.
};

}  // namespace timecache::sessionize

#endif  // TIMECACHED_CLIENT_EXAMPLES_SESSION_WATCH_H_

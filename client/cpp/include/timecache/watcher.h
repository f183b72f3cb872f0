// A stream of expired entries, or of changes.
//
//   timecache::Watcher watcher(client, {.namespaces = {"sessions"}});
//   while (true) {
//     absl::StatusOr<timecache::WatchBatch> batch = watcher.Next();
//     if (!batch.ok()) break;
//     for (const timecache::ExpiredEvent& event : batch->events) { ... }
//   }

#ifndef TIMECACHE_WATCHER_H_
#define TIMECACHE_WATCHER_H_

#include <functional>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"
#include "timecache/watch_types.h"

namespace timecache {

// A watch on the deaths in one or more namespaces, or on what is put, renewed and
// removed there (WatchOptions::changes). Reconnects by itself, and
// continues after the last batch that Next has returned: every event is
// delivered exactly once, or is counted in `lost`. Only if the log has changed,
// because the server was restarted or the namespace created anew, does it start
// again, with the oldest retained event, and set log_changed. To continue in
// another process, store each batch's resume_token once it is handled.
//
// A break is: UNAVAILABLE, a stream that the server closed gracefully (it
// stops) or that was reset without a reason of the server's, UNREAD_RESPONSES,
// a lost connection, silence_max, or, once, a message larger than the channel
// accepts (WatchOptions::max_message_bytes). Any other error of the server ends
// the watch: NOT_FOUND (no such namespace or group, or deleted meanwhile),
// INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED (reasons
// MAX_WATCHERS, MAX_EXPIRING_WATCHERS) at the first attempt, and with
// fail_on_loss a loss.
//
// In a group, or with lead_time, there is no position to resume from: unsettled
// events are delivered again, and so are entries that are about to die.
//
// Next by one thread at a time; Cancel by any. Holds at most one unread message
// (about 1 MiB, more only for a larger value): flow control stops the stream of
// a slow reader, whose losses `lost` finally counts. Has no thread of its own.
class TIMECACHED_EXPORT Watcher {
 public:
  // Connects at the first call of Next. The first batch of each namespace
  // arrives at once: from then on the watch is established, and every later
  // death there is delivered.
  explicit Watcher(const Client& client, WatchOptions options = {});
  // Cancels. Not while another thread is in Next or Cancel.
  ~Watcher();

  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // The next batch. Waits for at most `timeout`: then DEADLINE_EXCEEDED, and
  // the watch continues. CANCELLED after Cancel. Any other error ends the
  // watch, and every later call returns the same.
  absl::StatusOr<WatchBatch> Next(
      absl::Duration timeout = absl::InfiniteDuration());

  // Ends the watch: a Next that waits returns CANCELLED, as does every later
  // one.
  void Cancel();

 private:
  class State;

  const std::unique_ptr<State> state_;  // Never null.
};

// A Watcher with a thread of its own that calls back.
//
// Thread-safe. The callbacks run on that thread, one at a time, and must not
// destroy the WatchThread. While on_batch runs, no batch is read: a slow
// callback makes a slow watcher.
class TIMECACHED_EXPORT WatchThread {
 public:
  // on_end is called once, last: with CANCELLED, or the error that ended the
  // watch.
  WatchThread(const Client& client, WatchOptions options,
              std::function<void(WatchBatch batch)> on_batch,
              std::function<void(const absl::Status& why)> on_end);
  // Cancels and waits for the callbacks to return.
  ~WatchThread();

  void Cancel() { watcher_.Cancel(); }

 private:
  Watcher watcher_;
  std::thread thread_;
};

}  // namespace timecache

#endif  // TIMECACHE_WATCHER_H_

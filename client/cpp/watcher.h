// Being told what expired.
//
//   timecache::Watcher watcher(client, {.namespaces = {"sessions"}});
//   while (true) {
//     absl::StatusOr<timecache::WatchBatch> batch = watcher.Next();
//     if (!batch.ok()) break;
//     for (const timecache::ExpiredEvent& event : batch->events) { ... }
//   }
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "client/cpp/watch_types.h"

namespace timecache::inline client {

class WatchStream;

// A watch on the deaths in one or more namespaces. Reconnects by itself; says
// so in the batch after, so that nothing is missed in silence.
//
// A break is: UNAVAILABLE, a stream that the server closed in good order (it
// stops), a connection that is lost, or silence_max. Anything else that the
// server says ends the watch: NOT_FOUND (no such namespace, or deleted
// meanwhile), INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED (reason
// MAX_WATCHERS) at the first attempt.
//
// Next by one thread at a time; Cancel by any. Holds at most one unread message
// (about 1 MiB, more only for a larger value): who reads slowly is held up by
// flow control, and finally told by `lost`. Has no thread of its own.
class Watcher {
 public:
  // Connects at the first call of Next. The first batch of each namespace comes
  // at once: from then on the watch stands, and every later death there will be
  // seen.
  explicit Watcher(const Client& client, WatchOptions options = {});
  // Cancels. Not while another thread is in Next or Cancel.
  ~Watcher();

  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // The next batch, waited for no longer than `timeout`: DEADLINE_EXCEEDED
  // then, and the watch goes on. CANCELLED after Cancel. Any other error is the
  // watch's end, and every later call returns the same.
  absl::StatusOr<WatchBatch> Next(
      absl::Duration timeout = absl::InfiniteDuration());

  // Ends the watch: a Next that waits returns CANCELLED, as does every later
  // one.
  void Cancel();

 private:
  struct Position {
    absl::Time watermark = absl::InfinitePast();  // Of the last batch.
    // After a restart at EARLIEST: what died before this has come already.
    absl::Time replay_until = absl::InfinitePast();
    bool broken = false;  // No batch since the last break.
  };

  bool Open(absl::Time give_up_at);
  WatchBatch Accept();
  static bool IsReplayed(const ExpiredEvent& event, Position& position);
  void HandleEnd(const absl::Status& status);
  bool IsBreak(const absl::Status& status) const;
  bool cancelled() const;

  // Constant after construction.
  const WatchOptions options_;
  const std::unique_ptr<v1::TimeCacheService::Stub> stub_;

  // Touched by Next alone.
  v1::WatchExpiredRequest request_;
  absl::Status end_;          // What the watch ended with; OK while it goes on.
  bool established_ = false;  // Whether any batch has come.
  absl::Time next_attempt_at_ = absl::InfinitePast();
  absl::Duration pause_;  // Before the next attempt but one.
  std::map<std::string, Position> positions_;  // One per namespace.

  mutable absl::Mutex mu_;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  // Written by Next under mu_, read by it without, by Cancel with it.
  std::unique_ptr<WatchStream> stream_;
};

// A Watcher with a thread of its own that calls back.
//
// Thread-safe. The callbacks come from that thread, one at a time, and must not
// destroy the WatchThread. While on_batch runs, nothing is read: a slow one is
// a slow watcher.
class WatchThread {
 public:
  // on_end is called once, last: CANCELLED, or what ended the watch.
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

}  // namespace timecache::inline client

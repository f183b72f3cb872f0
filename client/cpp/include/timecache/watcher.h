// A stream of the entries that expire.
//
//   timecache::Watcher watcher(client, {.namespaces = {"sessions"}});
//   while (true) {
//     absl::StatusOr<timecache::WatchBatch> batch = watcher.Next();
//     if (!batch.ok()) break;
//     for (const timecache::ExpiredEvent& event : batch->events) { ... }
//   }
#pragma once

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

// A watch on the deaths in one or more namespaces. Reconnects by itself, and
// goes on behind the last batch that Next has returned: every event comes
// exactly once, or is counted in `lost`. Only where there is nothing to go on
// with, as the server was restarted or the namespace made anew, does it begin
// anew, with the oldest event that is retained; it then says log_changed. To go
// on in another process, store each batch's resume_token once it is handled.
//
// A break is: UNAVAILABLE, a stream that the server closed in good order (it
// stops), a connection that is lost, silence_max, or, once, a message larger
// than the channel takes (WatchOptions::max_message_bytes). Anything else that
// the server says ends the watch: NOT_FOUND (no such namespace or group, or
// deleted meanwhile), INVALID_ARGUMENT, PERMISSION_DENIED, RESOURCE_EXHAUSTED
// (reasons MAX_WATCHERS, MAX_EXPIRING_WATCHERS) at the first attempt, and with
// fail_on_loss a loss.
//
// In a group, or with lead_time, there is no place to go on from: what was
// given and not settled is given out again, what is going to die is told again.
//
// Next by one thread at a time; Cancel by any. Holds at most one unread message
// (about 1 MiB, more only for a larger value): who reads slowly is held up by
// flow control, and finally told by `lost`. Has no thread of its own.
class TIMECACHED_EXPORT Watcher {
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
  class State;

  const std::unique_ptr<State> state_;  // Never null.
};

// A Watcher with a thread of its own that calls back.
//
// Thread-safe. The callbacks come from that thread, one at a time, and must not
// destroy the WatchThread. While on_batch runs, nothing is read: a slow one is
// a slow watcher.
class TIMECACHED_EXPORT WatchThread {
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

}  // namespace timecache

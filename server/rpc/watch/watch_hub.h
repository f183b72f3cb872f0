// Wakes the watch streams: when there is something to read, and for their
// heartbeats.

#ifndef TIMECACHED_SERVER_RPC_WATCH_WATCH_HUB_H_
#define TIMECACHED_SERVER_RPC_WATCH_WATCH_HUB_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/base/lock_order.h"
#include "server/base/steady_cond_var.h"
#include "server/rpc/call/fair_queue.h"
#include "server/rpc/watch/event_filters.h"

namespace timecache::server {

// A stream that the hub wakes.
class Watcher {
 public:
  virtual ~Watcher() = default;

  // Why a watcher is woken.
  enum class Wake {
    kReady,      // there may be events, or its timer has come
    kHeartbeat,  // send the watermark now
    kDrain,      // the server stops: send the last watermark and end
  };
  // Called on the hub's thread, without a lock. Must not block, and works for
  // about a millisecond at most. Returns whether it has more to do: then it is
  // woken again when the others have had their turn.
  virtual bool OnWake(Wake why) = 0;
};

// Thread-safe. One thread delivers wake-ups to the watchers, so that the thread
// that publishes events only pays a queue entry for each. At most one entry
// waits for a watcher, however often it is woken. Namespaces take turns: a
// thousand busy watchers of one delay those of another by one watcher's turn.
class WatchHub {
 public:
  // Messages without events that all watchers together get a second.
  static constexpr int64_t kMaxHeartbeatsPerSecond = 10'000;

  // `clock` is not owned and must outlive the hub. At most `max_watchers` at
  // once.
  WatchHub(const Clock* clock, int64_t max_watchers);
  ~WatchHub();
  WatchHub(const WatchHub&) = delete;
  WatchHub& operator=(const WatchHub&) = delete;

  const Clock* clock() const { return clock_; }
  EventFilters* filters() { return &filters_; }

  // A watcher's needs: turns in this flow, its namespace, and a heartbeat each
  // `heartbeat_us`.
  struct Needs {
    std::string flow = {};
    int64_t heartbeats = 0;
    int64_t heartbeat_us = kMicrosPerSecond;
    // Whether it counts in `max_watchers`: it waits for events.
    bool waits = true;
  };
  // RESOURCE_EXHAUSTED (MAX_WATCHERS), or UNAVAILABLE once Drain was called.
  absl::Status Add(std::shared_ptr<Watcher> watcher, Needs needs)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Add(std::shared_ptr<Watcher> watcher) {
    return Add(std::move(watcher), Needs());
  }
  // The time until such a watcher's next heartbeat: `heartbeat_us`, or the
  // interval of its equal share of kMaxHeartbeatsPerSecond if all ask for more
  // than these.
  int64_t HeartbeatUs(const Needs& needs) const ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const std::shared_ptr<Watcher>& watcher) ABSL_LOCKS_EXCLUDED(mu_);

  // There may be events for it. From any thread, quick.
  void Notify(const std::shared_ptr<Watcher>& watcher) ABSL_LOCKS_EXCLUDED(mu_);

  // Wakes it at `due_us` on the clock, in place of what was set before.
  void SetTimer(const std::shared_ptr<Watcher>& watcher, int64_t due_us)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Asks every watcher to send its watermark.
  void HeartbeatAll() ABSL_LOCKS_EXCLUDED(mu_);

  // Asks every watcher to end, and accepts no more. Does not wait for them;
  // returns how many there are.
  size_t Drain() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until there is none, at most until then; returns how many are left.
  size_t WaitForNone(std::chrono::steady_clock::time_point deadline)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Current watchers, and the most that are accepted.
  int64_t size() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t max() const ABSL_LOCKS_EXCLUDED(mu_);
  // A change applies to later watchers.
  void SetMax(int64_t max_watchers) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct State {
    Needs needs;
    int64_t timer_us = kNeverUs;
    bool queued = false;
    Watcher::Wake why = Watcher::Wake::kReady;
  };
  using Timer = std::pair<int64_t, Watcher*>;

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Queue(Watcher* watcher, Watcher::Wake why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void QueueAll(Watcher::Wake why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void QueueDue(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  EventFilters filters_;

  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kHub)
      ABSL_ACQUIRED_BEFORE(lock_order::kChanges);
  SteadyCondVar wake_;
  SteadyCondVar removed_;
  int64_t max_watchers_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<Watcher*, std::pair<std::shared_ptr<Watcher>, State>>
      watchers_ ABSL_GUARDED_BY(mu_);
  FairQueue<Watcher*> queue_ ABSL_GUARDED_BY(mu_);
  // Of these, those that wait.
  int64_t waiting_ ABSL_GUARDED_BY(mu_) = 0;
  // Heartbeats a second that all ask for.
  double heartbeats_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<Timer> timers_ ABSL_GUARDED_BY(mu_);
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_WATCH_HUB_H_

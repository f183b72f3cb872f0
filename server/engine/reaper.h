// The thread that advances the buckets of all maps.

#ifndef TIMECACHED_SERVER_ENGINE_REAPER_H_
#define TIMECACHED_SERVER_ENGINE_REAPER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/store/statistics.h"

namespace timecache::server {

// Advances each map when its next bucket is due, and sweeps what died in
// bounded steps, one map after the other: a huge bucket of one map does not
// delay another's rotation, and no code of a watcher runs here. One deadline a
// map, never one an entry.
//
// It also yields to other threads: a sweep that is on schedule pauses after
// each step. A thread that waits for the core then gets it at once, not at the
// end of the scheduler's slice of several milliseconds, and threads that wake
// up find idle cores. The pauses halve the speed of a long sweep. A sweep that
// has taken half a bucket width, or that a caller waits for, does not pause.
//
// The memory of dead entries is returned to the system in small steps.
//
// Thread-safe. Idle, it sleeps until the next bucket of any map dies, or for
// kIdleMemoryPeriodUs.
class Reaper {
 public:
  // Records that are swept before the next map has its turn: a tenth to a
  // quarter of a millisecond.
  static constexpr int kMaxSweepStep = 1024;
  // Between two steps of a sweep. The kernel's timers add some 50 us.
  static constexpr int64_t kPauseUs = 60;
  // How often a Flush checks whether dead entries may be published.
  static constexpr int64_t kPermitPollUs = 200;
  // Interval between calls of BlockPool::GiveBack, while there is idle memory,
  // and while there is none.
  static constexpr int64_t kGiveBackPeriodUs = kMicrosPerSecond / 10;
  static constexpr int64_t kIdleMemoryPeriodUs = kMicrosPerSecond;

  // Called after a slow sweep of a map's due buckets: `took_us` is the time
  // from the first step to the last, including other maps' turns. For the log;
  // runs on the reaper's thread.
  using SlowSweep =
      std::function<void(const std::string& name, int64_t took_us)>;
  static constexpr int64_t kSlowSweepUs = kMicrosPerSecond;

  // `clock` is not owned and must outlive the reaper. The thread starts at
  // once.
  explicit Reaper(const Clock* clock, SlowSweep slow_sweep = nullptr);
  // Stops; unswept buckets stay unswept.
  ~Reaper();
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // Drives `map` from now on, until Remove. Takes over its schedule.
  void Add(std::shared_ptr<TimeCacheMap> map) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(const TimeCacheMap* map) ABSL_LOCKS_EXCLUDED(mu_);

  // Waits until all that is due at the clock's time has been swept and
  // published, and every map's watermark is at least the clock's time at the
  // call. Must not run on the reaper's thread.
  void Flush() ABSL_LOCKS_EXCLUDED(mu_);

  // Durations of the completed sweeps, as passed to SlowSweep.
  DurationHistogram sweeps() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Driven {
    std::shared_ptr<TimeCacheMap> map;
    // Its key in schedule_; kNeverUs if it is not there.
    int64_t due_us = kNeverUs;
    // Whether it is in busy_.
    bool busy = false;
    // When the current sweep started; kNeverUs if there is none.
    int64_t sweep_began_us = kNeverUs;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Schedule(const TimeCacheMap* map, int64_t due_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  void SetDue(Driven* driven, int64_t due_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CollectDue(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Turn(TimeCacheMap* map) ABSL_LOCKS_EXCLUDED(mu_);
  bool AwaitsPermit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  const SlowSweep slow_sweep_;

  mutable absl::Mutex mu_;
  DurationHistogram sweeps_ ABSL_GUARDED_BY(mu_);
  SteadyCondVar wake_;
  absl::CondVar flushed_;
  absl::flat_hash_map<const TimeCacheMap*, Driven> driven_ ABSL_GUARDED_BY(mu_);
  std::set<std::pair<int64_t, const TimeCacheMap*>> schedule_
      ABSL_GUARDED_BY(mu_);
  // Maps with something to advance or sweep now, each once, in order of their
  // turns.
  std::deque<std::shared_ptr<TimeCacheMap>> busy_ ABSL_GUARDED_BY(mu_);
  // Flushes requested, in progress and done.
  uint64_t flush_asked_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t flush_begun_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t flush_done_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // When to return memory to the system next.
  int64_t give_back_us_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_REAPER_H_

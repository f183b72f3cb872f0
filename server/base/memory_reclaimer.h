// Reclaims memory of events when entries need it.

#ifndef TIMECACHED_SERVER_BASE_MEMORY_RECLAIMER_H_
#define TIMECACHED_SERVER_BASE_MEMORY_RECLAIMER_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/base/lock_order.h"
#include "server/base/memory_budget.h"

namespace timecache::server {

// Holds events that can be dropped, and counted as lost, for their memory: the
// log of a map. Thread-safe.
class EventHolder {
 public:
  enum class Kind : uint8_t {
    // Changes of entries, as kRetained.
    kChanges,
    // Events retained for watchers that resume.
    kRetained,
    // The same where the limit is reached: the newest batch, too, once all
    // connected watchers have read it.
    kNewest,
    // Events that consumer groups have not settled and no member holds, except
    // the newest batch of each group.
    kBacklog,
    // All events that groups have not settled.
    kHeld,
  };
  struct Holding {
    // What dropping all of it would free, by estimate; 0: nothing can be.
    int64_t bytes = 0;
    // When the oldest of it was published.
    int64_t oldest_us = kNeverUs;
  };

  virtual ~EventHolder() = default;
  virtual Holding Held(Kind kind) const = 0;
  // Drops the oldest until at least `bytes` have been freed or there is nothing
  // to drop. Returns whether anything was dropped.
  virtual bool Drop(Kind kind, int64_t bytes) = 0;
};

// Drops events as memory approaches its limit, so that expired events do not
// block writes: from MemoryBudget::kRetainedHigh on retained changes, and when
// none of them is left, retained events; when none of these is left to drop and the limit is reached, backlogs of groups; and when these
// are gone, too, events that members of groups hold, as far as a namespace has
// more of them than its share of 1/kHeldShare of the limit. So no namespace's
// groups can block writes of others, and events that members hold in ordinary
// use stay.
//
// Order: a namespace that holds less than the average of those that hold events
// loses nothing, so that a burst in one does not empty the logs of all; among
// the others the one with the oldest event loses first. So equally busy
// namespaces lose the oldest events of all of them.
//
// Thread-safe. Never called under a lock of a map, log or group. A step costs
// O(number of logs), and drops kStepBytes at most.
class MemoryReclaimer {
 public:
  // Bytes that one step frees, and that one log loses before others are
  // considered again.
  static constexpr int64_t kStepBytes = int64_t{16} << 20;
  static constexpr int64_t kTurnBytes = int64_t{1} << 20;
  // The namespaces with groups may keep this part of the limit for events that
  // their members hold, in equal shares, whatever else needs memory.
  static constexpr int64_t kHeldShare = 16;

  // The one of this process, beside MemoryBudget::Process(); never destroyed.
  static MemoryReclaimer& Process();

  MemoryReclaimer() = default;
  MemoryReclaimer(const MemoryReclaimer&) = delete;
  MemoryReclaimer& operator=(const MemoryReclaimer&) = delete;

  // `holder` is not owned, and must be removed before it is destroyed.
  void Add(EventHolder* holder) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(EventHolder* holder) ABSL_LOCKS_EXCLUDED(mu_);

  // One step, if it is time for one. Called by publishers of events, after each
  // piece: two loads if there is nothing to do. Returns whether there is more
  // to do now.
  bool Step() ABSL_LOCKS_EXCLUDED(mu_) {
    if (!reclaiming_.load(std::memory_order_relaxed) &&
        MemoryBudget::Process().BytesBeyond(MemoryBudget::kRetainedHigh) == 0) {
      return false;
    }
    return StepNow();
  }

  // Called before a write is refused at the limit: steps until there is room.
  // OK, or MemoryBudget::Error() if nothing more can be dropped. Once nothing
  // could be dropped it does not check again for kPauseUs and kPausePerLogUs
  // for each log, unless there are kTurnBytes more in events or idle blocks: so
  // a refusal costs some loads, and all of them together a small share of a processor,
  // however many writers and logs there are. kNeverUs: it always checks.
  static constexpr int64_t kPauseUs = 1'000;
  static constexpr int64_t kPausePerLogUs = 10;
  absl::Status MakeRoom(int64_t now_us = kNeverUs) ABSL_LOCKS_EXCLUDED(mu_);
  // How often MakeRoom has checked all logs. For tests.
  int64_t looks() const { return looks_.load(std::memory_order_relaxed); }

 private:
  struct Candidate {
    EventHolder* holder;
    EventHolder::Holding holding;
  };

  bool IsPausing(int64_t now_us) const;
  bool StepNow() ABSL_LOCKS_EXCLUDED(mu_);
  bool StepLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Reclaim(EventHolder::Kind kind, int64_t low_mark)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static Candidate* Next(std::vector<Candidate>* candidates, int64_t kept);

  // Held for a step. Acquired before the locks of logs and groups.
  absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(lock_order::kLog);
  absl::flat_hash_set<EventHolder*> holders_ ABSL_GUARDED_BY(mu_);
  // Since the high mark was passed, and until the low one is reached or nothing
  // is left.
  std::atomic<bool> reclaiming_{false};
  // The retained bytes when none could be dropped: until they grow by
  // kTurnBytes, Step does not check again.
  int64_t stuck_bytes_ ABSL_GUARDED_BY(mu_) = -kTurnBytes;
  // When MakeRoom found nothing to drop, until when it does not check again,
  // and the events' bytes at that time.
  std::atomic<int64_t> no_room_us_{0};
  std::atomic<int64_t> no_room_until_us_{0};
  std::atomic<int64_t> no_room_bytes_{0};
  std::atomic<int64_t> looks_{0};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_MEMORY_RECLAIMER_H_

// The account of the memory that the engine holds in this process.

#ifndef TIMECACHED_SERVER_BASE_MEMORY_BUDGET_H_
#define TIMECACHED_SERVER_BASE_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"

namespace timecache::server {

// Counts the memory of all maps: of segments, indexes and tables, of batches of
// events, wherever these are still referred to (the log, groups, messages in
// flight), and of what groups know of unsettled events. Counted as it is taken
// and given back, in large pieces; so the sum may pass the limit by what is
// being taken as it is reached: a segment, a batch, a request's values. What
// the block pool keeps after it was given back counts against the limit, too,
// and is the first to go; what the heap keeps is not counted.
//
// Well below the limit retained events begin to give way, see MemoryReclaimer.
//
// Thread-safe, without a lock: Add is an atomic addition, level a load.
class MemoryBudget {
 public:
  // In sixteenths of the limit: beyond kRetainedHigh retained events are
  // dropped until kRetainedLow is reached; at kBacklogHigh, the limit, once no
  // retained events are left to drop, the events of consumer groups until
  // kBacklogLow. The gap between each pair keeps a server that works at its
  // mark from dropping a batch with each put.
  static constexpr int64_t kSixteenths = 16;
  static constexpr int64_t kRetainedHigh = 12;
  static constexpr int64_t kRetainedLow = 11;
  static constexpr int64_t kBacklogHigh = 16;
  static constexpr int64_t kBacklogLow = 15;

  // Beyond the limit there is a reserve of this share of it, for work that must
  // go on: overwriting and renewing entries, and the events of dying entries,
  // which take about as much as the entries did.
  static constexpr int64_t kReserveShare = 16;

  enum class Level : uint8_t {
    kRoom,
    // At the limit: growth is refused.
    kFull,
    // The reserve is used up, too: every write that takes memory is refused.
    kExhausted,
  };

  // How the memory is used. Read one after the other while the values change:
  // the sum may differ from used_bytes() by concurrent changes.
  struct Shares {
    // Live entries, dead entries that are not swept yet, and their indexes.
    int64_t entries_bytes = 0;
    // Events in logs, also those that a group or a message refers to, too.
    int64_t retained_bytes = 0;
    // Events that only groups' backlogs and messages in flight refer to.
    int64_t backlog_bytes = 0;
  };

  // The one of this process; never destroyed.
  static MemoryBudget& Process() { return process_; }

  constexpr MemoryBudget() = default;
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  // 0: no limit.
  void SetLimit(int64_t bytes);
  int64_t limit_bytes() const {
    const int64_t limit = limit_.load(std::memory_order_relaxed);
    return limit == kNone ? 0 : limit;
  }

  // Less, if negative.
  void Add(int64_t bytes) { used_.fetch_add(bytes, std::memory_order_relaxed); }
  // The same, for events.
  void AddEvents(int64_t bytes) {
    events_.fetch_add(bytes, std::memory_order_relaxed);
    Add(bytes);
  }
  // A log retains so much more of what AddEvents counts, or less.
  void AddRetained(int64_t bytes) {
    retained_.fetch_add(bytes, std::memory_order_relaxed);
  }
  // Resident memory that nothing uses, which the process keeps to use it again.
  void AddIdle(int64_t bytes) {
    idle_.fetch_add(bytes, std::memory_order_relaxed);
  }
  int64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  int64_t idle_bytes() const { return idle_.load(std::memory_order_relaxed); }
  int64_t retained_bytes() const {
    return retained_.load(std::memory_order_relaxed);
  }
  Shares shares() const;

  Level level() const {
    const int64_t held = held_bytes();
    if (held < limit_.load(std::memory_order_relaxed)) return Level::kRoom;
    return held < exhausted_.load(std::memory_order_relaxed)
               ? Level::kFull
               : Level::kExhausted;
  }
  // What is held beyond so many sixteenths of the limit, or 0.
  int64_t BytesBeyond(int64_t sixteenths) const;

  // RESOURCE_EXHAUSTED (MAX_MEMORY) with the numbers, and a remedy.
  absl::Status Error() const;

 private:
  static constexpr int64_t kNone = INT64_MAX;

  // What counts against the limit.
  int64_t held_bytes() const { return used_bytes() + idle_bytes(); }

  static MemoryBudget process_;

  std::atomic<int64_t> used_{0};
  // Beside used_.
  std::atomic<int64_t> idle_{0};
  // Of used_: events; of these: those in logs.
  std::atomic<int64_t> events_{0};
  std::atomic<int64_t> retained_{0};
  std::atomic<int64_t> limit_{kNone};
  // The limit and the reserve.
  std::atomic<int64_t> exhausted_{kNone};
};

// A part of the process's account that its owner holds, as large as it was set
// last. Not thread-safe.
template <void (MemoryBudget::*Count)(int64_t)>
class BasicMemoryCharge {
 public:
  explicit BasicMemoryCharge(int64_t bytes = 0) { Set(bytes); }
  BasicMemoryCharge(BasicMemoryCharge&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)) {}
  BasicMemoryCharge& operator=(BasicMemoryCharge&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~BasicMemoryCharge() { Set(0); }

  void Set(int64_t bytes) {
    if (bytes == bytes_) return;
    (MemoryBudget::Process().*Count)(bytes - bytes_);
    bytes_ = bytes;
  }

 private:
  int64_t bytes_ = 0;
};

using MemoryCharge = BasicMemoryCharge<&MemoryBudget::Add>;
// For events, in batches or by themselves.
using EventMemoryCharge = BasicMemoryCharge<&MemoryBudget::AddEvents>;

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_MEMORY_BUDGET_H_

// The account of the memory that the engine holds in this process.

#ifndef TIMECACHED_SERVER_ENGINE_MEMORY_BUDGET_H_
#define TIMECACHED_SERVER_ENGINE_MEMORY_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"

namespace timecache {

// Counts the memory of all maps: of segments, indexes and tables, of batches of
// events, wherever these are still referred to (the log, groups, messages in
// flight), and of what groups know of unsettled events. Counted as it is taken
// and given back, in large pieces; so the sum may pass the limit by what is
// being taken as it is reached: a segment, a batch, a request's values.
//
// Thread-safe, without a lock: Add is an atomic addition, level a load.
class MemoryBudget {
 public:
  // Beyond the limit lies a reserve of this share of it, for what must go on
  // there: entries that are overwritten and renewed, and the events of those
  // that die, which take about as much as they did.
  static constexpr int64_t kReserveShare = 16;

  enum class Level : uint8_t {
    kRoom,
    // At the limit: what grows is refused.
    kFull,
    // The reserve is used up, too: nothing is written any more that takes
    // memory, and events are dropped, the oldest first.
    kExhausted,
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
  int64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }

  Level level() const {
    const int64_t used = used_bytes();
    if (used < limit_.load(std::memory_order_relaxed)) return Level::kRoom;
    return used < exhausted_.load(std::memory_order_relaxed)
               ? Level::kFull
               : Level::kExhausted;
  }
  // How much is to be dropped: what is held beyond the reserve, or 0.
  int64_t ExcessBytes() const;

  // RESOURCE_EXHAUSTED (MAX_MEMORY) with the numbers.
  absl::Status Error() const;

 private:
  static constexpr int64_t kNone = INT64_MAX;

  static MemoryBudget process_;

  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> limit_{kNone};
  // The limit and the reserve.
  std::atomic<int64_t> exhausted_{kNone};
};

// A part of the process's account that somebody holds, as large as it was set
// last. Not thread-safe.
class MemoryCharge {
 public:
  explicit MemoryCharge(int64_t bytes = 0) { Set(bytes); }
  MemoryCharge(MemoryCharge&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryCharge& operator=(MemoryCharge&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MemoryCharge() { Set(0); }

  void Set(int64_t bytes) {
    if (bytes == bytes_) return;
    MemoryBudget::Process().Add(bytes - bytes_);
    bytes_ = bytes;
  }

 private:
  int64_t bytes_ = 0;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_ENGINE_MEMORY_BUDGET_H_

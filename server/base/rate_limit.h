// Limits the rate of operations.

#ifndef TIMECACHED_SERVER_BASE_RATE_LIMIT_H_
#define TIMECACHED_SERVER_BASE_RATE_LIMIT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/base/clock.h"

namespace timecache::server {

// A token bucket that holds one second's operations: as many may arrive at
// once, and on average no more than that a second. Stored as one number, the
// time at which the bucket would be full (the generic cell rate algorithm), so
// that taking tokens is one compare-and-swap, and nothing has to run meanwhile.
//
// Thread-safe, without a lock. Take costs a load where there is no limit, else
// about 20 ns, however many it takes.
class RateLimit {
 public:
  static constexpr int64_t kMaxPerSecond = 1'000'000'000;

  // `origin_us`: about now. 0 a second: no limit.
  RateLimit(int64_t per_second, int64_t origin_us)
      : origin_us_(origin_us), per_second_(per_second) {}
  RateLimit(const RateLimit&) = delete;
  RateLimit& operator=(const RateLimit&) = delete;

  // What was taken before counts as much of the second as it did.
  void Set(int64_t per_second) {
    per_second_.store(per_second, std::memory_order_relaxed);
  }
  int64_t per_second() const {
    return per_second_.load(std::memory_order_relaxed);
  }

  // Takes up to `wanted` operations and returns how many, those first that come
  // first.
  size_t Take(size_t wanted, int64_t now_us) {
    const int64_t per_second = this->per_second();
    return per_second == 0 ? wanted : TakeLimited(wanted, per_second, now_us);
  }
  // Takes all of them or none: none, if that is more than one second's.
  bool TakeAll(size_t wanted, int64_t now_us) {
    const int64_t per_second = this->per_second();
    return per_second == 0 ||
           TakeLimited(wanted, per_second, now_us, wanted) == wanted;
  }
  // The time until so many more can be taken, or a second's, if no other caller
  // takes them.
  int64_t WaitUs(int64_t now_us, size_t wanted = 1) const;

  // Operations that were refused.
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  // At least `least`, or none.
  size_t TakeLimited(size_t wanted, int64_t per_second, int64_t now_us,
                     size_t least = 1);
  // Nanoseconds since origin_us_, for 146 years.
  int64_t NowNs(int64_t now_us) const;

  const int64_t origin_us_;
  std::atomic<int64_t> per_second_;
  // When the bucket is full, unless that is past.
  std::atomic<int64_t> full_ns_{INT64_MIN};
  std::atomic<uint64_t> refused_{0};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_RATE_LIMIT_H_

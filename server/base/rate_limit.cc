#include "server/base/rate_limit.h"

#include <algorithm>

namespace timecache::server {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kNanosPerMicro = 1'000;
// So that no difference of two times overflows.
constexpr int64_t kMaxNowUs = (INT64_MAX / 2 - 4 * kSecondNs) / kNanosPerMicro;

// The part of the bucket that `operations` fill, rounded up: the average is
// never exceeded. At most a second's.
int64_t NanosOf(int64_t operations, int64_t per_second) {
  return (operations * kSecondNs + per_second - 1) / per_second;
}

}  // namespace

int64_t RateLimit::NowNs(int64_t now_us) const {
  return std::clamp<int64_t>(now_us - origin_us_, -kMaxNowUs, kMaxNowUs) *
         kNanosPerMicro;
}

size_t RateLimit::TakeLimited(size_t wanted, int64_t per_second, int64_t now_us,
                              size_t least) {
  const int64_t now_ns = NowNs(now_us);
  const int64_t most =
      std::min<int64_t>(static_cast<int64_t>(wanted), per_second);
  int64_t full_ns = full_ns_.load(std::memory_order_relaxed);
  int64_t taken;
  for (;;) {
    const int64_t from_ns = std::max(full_ns, now_ns);
    // What is left of the second, in operations.
    const int64_t left_ns = std::max<int64_t>(now_ns + kSecondNs - from_ns, 0);
    taken = std::min(most, left_ns * per_second / kSecondNs);
    if (taken < static_cast<int64_t>(least)) {
      taken = 0;
      break;
    }
    const int64_t after_ns = from_ns + NanosOf(taken, per_second);
    if (full_ns_.compare_exchange_weak(full_ns, after_ns,
                                       std::memory_order_relaxed)) {
      break;
    }
  }
  if (static_cast<size_t>(taken) < wanted) {
    refused_.fetch_add(wanted - static_cast<size_t>(taken),
                       std::memory_order_relaxed);
  }
  return static_cast<size_t>(taken);
}

int64_t RateLimit::WaitUs(int64_t now_us, size_t wanted) const {
  const int64_t per_second = this->per_second();
  if (per_second == 0) return 0;
  const int64_t most =
      std::min<int64_t>(static_cast<int64_t>(wanted), per_second);
  const int64_t now_ns = NowNs(now_us);
  const int64_t from_ns =
      std::max(full_ns_.load(std::memory_order_relaxed), now_ns);
  const int64_t wait_ns =
      from_ns - now_ns - kSecondNs + NanosOf(most, per_second);
  return std::max<int64_t>((wait_ns + kNanosPerMicro - 1) / kNanosPerMicro, 0);
}

}  // namespace timecache::server

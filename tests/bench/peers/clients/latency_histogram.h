// Counts of latencies by size, from which percentiles are read.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace timecache::bench {

// Log-linear buckets: what it tells is at most 1.6 % above what was recorded.
// Not thread-safe. Recording costs one increment; the size is fixed, 16 KiB.
class LatencyHistogram {
 public:
  // `latency_ns` >= 0, in nanoseconds; `count` operations had it.
  void Record(int64_t latency_ns, uint64_t count) {
    counts_[IndexOf(latency_ns)] += count;
    total_ += count;
    max_ns_ = std::max(max_ns_, latency_ns);
  }

  uint64_t total() const { return total_; }
  double max_us() const { return static_cast<double>(max_ns_) / 1e3; }

  // The latency that `share` (0 to 1) of all operations do not pass, in
  // microseconds; 0 if nothing was recorded.
  double PercentileUs(double share) const {
    const auto wanted = std::max<uint64_t>(
        1,
        static_cast<uint64_t>(std::ceil(share * static_cast<double>(total_))));
    uint64_t seen = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen >= wanted) {
        return static_cast<double>(std::min(UpperNs(i), max_ns_)) / 1e3;
      }
    }
    return max_us();
  }

  void Clear() { *this = LatencyHistogram(); }

 private:
  static constexpr int kSubBits = 6;
  static constexpr int64_t kSub = 1 << kSubBits;
  static constexpr int kMaxBits =
      37;  // 137 s; what takes longer counts as that

  static size_t IndexOf(int64_t ns) {
    const int64_t bounded =
        std::clamp<int64_t>(ns, 0, (int64_t{1} << kMaxBits) - 1);
    const int bits = std::bit_width(static_cast<uint64_t>(bounded));
    if (bits <= kSubBits + 1) return static_cast<size_t>(bounded);
    const int shift = bits - kSubBits - 1;
    return static_cast<size_t>((shift << kSubBits) + (bounded >> shift));
  }

  static int64_t UpperNs(size_t index) {
    const auto value = static_cast<int64_t>(index);
    if (value < 2 * kSub) return value;
    const int64_t shift = (value >> kSubBits) - 1;
    const int64_t first = value - (shift << kSubBits);
    return ((first + 1) << shift) - 1;
  }

  std::array<uint64_t, static_cast<size_t>((kMaxBits - kSubBits + 1) * kSub)>
      counts_ = {};
  uint64_t total_ = 0;
  int64_t max_ns_ = 0;
};

}  // namespace timecache::bench

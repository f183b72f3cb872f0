// How long things took: many durations in little room.

#ifndef TIMECACHED_CLIENT_CLI_BENCH_LATENCY_HISTOGRAM_H_
#define TIMECACHED_CLIENT_CLI_BENCH_LATENCY_HISTOGRAM_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace timecache::cli {

// Counts durations in log-linear buckets: every power of two of nanoseconds is
// divided into 64. So a percentile is never below the exact one, and above it
// by less than 1/64 of it; the greatest and the mean are exact. Longer ones
// than kMaxNs count as that.
//
// Not thread-safe. Add is a few instructions; 19 KiB.
class LatencyHistogram {
 public:
  static constexpr uint64_t kMaxNs = (uint64_t{1} << 42) - 1;  // 73 minutes.

  void Add(uint64_t duration_ns);
  // Takes the other one's durations in.
  void Merge(const LatencyHistogram& other);
  void Clear() { *this = LatencyHistogram(); }

  uint64_t count() const { return count_; }
  uint64_t max_ns() const { return max_ns_; }
  double mean_ns() const;  // 0 of none.

  // What so much of a hundred of the durations do not exceed: 0 to 100. 0 of
  // none.
  uint64_t PercentileNs(double percent) const;

 private:
  static constexpr int kSubBucketBits = 6;
  static constexpr int kMaxBits = 42;
  static constexpr size_t kBuckets = (kMaxBits - kSubBucketBits + 1)
                                     << kSubBucketBits;

  static size_t IndexOf(uint64_t duration_ns);
  // The longest duration of a bucket.
  static uint64_t UpperNs(size_t index);

  std::array<uint64_t, kBuckets> counts_ = {};
  uint64_t count_ = 0;
  uint64_t max_ns_ = 0;
  double sum_ns_ = 0;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_BENCH_LATENCY_HISTOGRAM_H_

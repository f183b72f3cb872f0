#include "client/cli/bench/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace timecache::cli {

// The first 64 buckets are of 1 ns each. From there on, a duration whose
// highest bit is b belongs to group b - 5, in which its six bits below that one
// number the bucket.
size_t LatencyHistogram::IndexOf(uint64_t duration_ns) {
  if (duration_ns < (uint64_t{1} << kSubBucketBits)) return duration_ns;
  const int shift =
      static_cast<int>(std::bit_width(duration_ns)) - 1 - kSubBucketBits;
  return (static_cast<size_t>(shift) << kSubBucketBits) +
         (duration_ns >> shift);
}

uint64_t LatencyHistogram::UpperNs(size_t index) {
  const size_t group = index >> kSubBucketBits;
  if (group == 0) return index;
  const int shift = static_cast<int>(group) - 1;
  const uint64_t lower =
      (index - (static_cast<size_t>(shift) << kSubBucketBits)) << shift;
  return lower + (uint64_t{1} << shift) - 1;
}

void LatencyHistogram::Add(uint64_t duration_ns) {
  duration_ns = std::min(duration_ns, kMaxNs);
  ++counts_[IndexOf(duration_ns)];
  ++count_;
  max_ns_ = std::max(max_ns_, duration_ns);
  sum_ns_ += static_cast<double>(duration_ns);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
  sum_ns_ += other.sum_ns_;
}

double LatencyHistogram::mean_ns() const {
  return count_ == 0 ? 0 : sum_ns_ / static_cast<double>(count_);
}

uint64_t LatencyHistogram::PercentileNs(double percent) const {
  if (count_ == 0) return 0;
  // Less a little: 99.9 % of 1,000 is the 999th, not the one above for
  // rounding.
  const double wanted =
      std::ceil(percent * static_cast<double>(count_) / 100 - 1e-6);
  const uint64_t rank =
      std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, count_);
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= rank) return std::min(UpperNs(i), max_ns_);
  }
  return max_ns_;
}

}  // namespace timecache::cli

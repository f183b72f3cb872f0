// What a map can tell about itself.

#ifndef TIMECACHED_SERVER_ENGINE_STATISTICS_H_
#define TIMECACHED_SERVER_ENGINE_STATISTICS_H_

#include <array>
#include <bit>
#include <cstdint>

namespace timecache {

// Counts durations in steps of a factor of two. Not thread-safe. O(1).
class LatenessHistogram {
 public:
  void Add(int64_t lateness_us, uint64_t count) {
    if (lateness_us < 0) lateness_us = 0;
    counts_[std::bit_width(static_cast<uint64_t>(lateness_us))] += count;
    total_ += count;
    if (lateness_us > max_us_) max_us_ = lateness_us;
  }

  // An upper bound of the given share (0 to 1) of all that was counted; 0 if
  // nothing.
  int64_t QuantileUs(double share) const {
    uint64_t seen = 0;
    for (size_t width = 0; width < counts_.size(); ++width) {
      seen += counts_[width];
      if (seen > 0 && static_cast<double>(seen) >= share * total_) {
        const int64_t bound_us = (int64_t{1} << width) - 1;
        return bound_us < max_us_ ? bound_us : max_us_;
      }
    }
    return 0;
  }

  int64_t max_us() const { return max_us_; }

 private:
  // counts_[w] counts durations whose binary form has w digits.
  std::array<uint64_t, 64> counts_ = {};
  uint64_t total_ = 0;
  int64_t max_us_ = 0;
};

struct MapStatistics {
  int64_t entries = 0;
  int64_t bytes = 0;
  // Asked from the allocator for segments, index and tables.
  int64_t memory_bytes = 0;
  int64_t live_buckets = 0;
  // Deaths that have been swept, by cause.
  uint64_t expired = 0;
  uint64_t evicted = 0;
  uint64_t rotated = 0;
  uint64_t events_retained = 0;
  int64_t events_retained_bytes = 0;
  int64_t watchers = 0;
  int64_t watermark_us = 0;
  int64_t bucket_width_us = 0;
  LatenessHistogram lateness;
  uint64_t bound_violations = 0;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_ENGINE_STATISTICS_H_

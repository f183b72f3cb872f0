// How long something took, each time.

#ifndef TIMECACHED_SERVER_BASE_DURATION_HISTOGRAM_H_
#define TIMECACHED_SERVER_BASE_DURATION_HISTOGRAM_H_

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace timecache::server {

// Counts durations in steps of a factor of two. Not thread-safe. O(1).
class DurationHistogram {
 public:
  void Add(int64_t duration_us, uint64_t count = 1) {
    if (duration_us < 0) duration_us = 0;
    counts_[IndexOf(duration_us)] += count;
    total_ += count;
    sum_us_ += static_cast<double>(duration_us) * static_cast<double>(count);
    if (duration_us > max_us_) max_us_ = duration_us;
  }

  void Merge(const DurationHistogram& from) {
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += from.counts_[i];
    total_ += from.total_;
    sum_us_ += from.sum_us_;
    if (from.max_us_ > max_us_) max_us_ = from.max_us_;
  }

  // An upper bound of the given share (0 to 1) of all that was counted; 0 if
  // nothing.
  int64_t QuantileUs(double share) const {
    uint64_t seen = 0;
    for (size_t width = 0; width < counts_.size(); ++width) {
      seen += counts_[width];
      if (seen > 0 &&
          static_cast<double>(seen) >= share * static_cast<double>(total_)) {
        const uint64_t bound_us = uint64_t{1} << width;
        return bound_us < static_cast<uint64_t>(max_us_)
                   ? static_cast<int64_t>(bound_us)
                   : max_us_;
      }
    }
    return 0;
  }

  int64_t max_us() const { return max_us_; }
  uint64_t total() const { return total_; }
  double sum_us() const { return sum_us_; }
  // Of durations of at most 2^width microseconds; `width` from 0 to 63.
  uint64_t CountAtMost(size_t width) const {
    uint64_t count = 0;
    for (size_t i = 0; i <= width; ++i) count += counts_[i];
    return count;
  }

  // All of it, for a coder of fields.
  template <typename Coder, typename Histogram>
  static void CodeFields(Coder& code, Histogram& histogram) {
    code(histogram.counts_, histogram.total_, histogram.sum_us_,
         histogram.max_us_);
  }

 private:
  static size_t IndexOf(int64_t duration_us) {
    return duration_us <= 1
               ? 0
               : std::bit_width(static_cast<uint64_t>(duration_us - 1));
  }

  // counts_[w] counts durations above 2^(w-1) and up to 2^w; the first one also
  // 0.
  std::array<uint64_t, 64> counts_ = {};
  uint64_t total_ = 0;
  double sum_us_ = 0;
  int64_t max_us_ = 0;
};

inline int64_t MicrosSince(std::chrono::steady_clock::time_point began) {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now() - began)
      .count();
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_DURATION_HISTOGRAM_H_

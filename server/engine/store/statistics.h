// The statistics of a map.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_STATISTICS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_STATISTICS_H_

#include <array>
#include <bit>
#include <cstdint>

#include "server/base/clock.h"
#include "server/engine/store/limit_hit.h"

namespace timecache::server {

// Counts durations in steps of a factor of two. Not thread-safe. O(1).
class DurationHistogram {
 public:
  void Add(int64_t duration_us, uint64_t count) {
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

// What operations did, each of a batch for itself.
struct OperationCounts {
  uint64_t puts = 0;
  // Lookups (Get, Contains) that found an entry, and that did not.
  uint64_t hits = 0;
  uint64_t misses = 0;
  // Of entries that were there.
  uint64_t removals = 0;
  // That succeeded, whatever they did.
  uint64_t appends = 0;
  uint64_t combines = 0;
  uint64_t gathers = 0;

  void Add(const OperationCounts& more) {
    puts += more.puts;
    hits += more.hits;
    misses += more.misses;
    removals += more.removals;
    appends += more.appends;
    combines += more.combines;
    gathers += more.gathers;
  }
};

// Counts begin when the server does, also those of a rebuilt map.
struct NamespaceStatistics {
  int64_t entries = 0;
  int64_t bytes = 0;
  // Asked from the allocator for segments, index and tables.
  int64_t memory_bytes = 0;
  int64_t live_buckets = 0;
  // Deaths, by cause; their events may still have to be published.
  uint64_t expired = 0;
  uint64_t evicted = 0;
  uint64_t rotated = 0;
  uint64_t events_retained = 0;
  int64_t events_retained_bytes = 0;
  // Events that were dropped before their retention was over, for their memory.
  uint64_t events_reclaimed = 0;
  // When the oldest of these was published; kNeverUs if there is none.
  int64_t oldest_retained_us = kNeverUs;
  int64_t watchers = 0;
  // Events for watches and their outcomes, as in ExpiryLog::Statistics: owed =
  // delivered + lost + left + pending.
  uint64_t watch_owed = 0;
  uint64_t watch_delivered = 0;
  uint64_t watch_lost = 0;
  uint64_t watch_left = 0;
  uint64_t watch_pending = 0;
  // Of the watch that is farthest behind.
  uint64_t watch_lag = 0;
  int64_t oldest_unread_us = kNeverUs;
  int64_t watermark_us = 0;
  int64_t bucket_width_us = 0;
  DurationHistogram lateness;
  // From death, or from when a watcher could take more if that was later, until
  // its event was handed to that watcher's stream: each watcher's for itself.
  DurationHistogram delivery_lateness;
  uint64_t bound_violations = 0;
  // Of `expired`: due while there was no server, and in no lateness.
  uint64_t expired_while_down = 0;
  OperationCounts operations;
  // Operations that a limit refused, by LimitHit.
  std::array<uint64_t, kLimitHits> refused = {};
  // Operations beyond max_operations_per_second.
  uint64_t rate_limited = 0;
  // Memory of the events that consumer groups have not settled, and its limit.
  int64_t backlog_bytes = 0;
  int64_t backlog_limit_bytes = 0;
  // Groups that were deleted because they were unused.
  uint64_t groups_expired = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_STATISTICS_H_

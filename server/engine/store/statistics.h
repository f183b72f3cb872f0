// The statistics of a map.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_STATISTICS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_STATISTICS_H_

#include <array>
#include <cstdint>

#include "server/base/clock.h"
#include "server/base/duration_histogram.h"
#include "server/engine/store/limit_hit.h"

namespace timecache::server {

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
  uint64_t changes_retained = 0;
  int64_t changes_retained_bytes = 0;
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

  // Makes them those of a namespace, whose other partition is `part`. Watches and
  // groups are in all partitions, and count once.
  void AddPartition(const NamespaceStatistics& part);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_STATISTICS_H_

#include "server/engine/store/statistics.h"

#include <algorithm>

namespace timecache::server {

void NamespaceStatistics::AddPartition(const NamespaceStatistics& part) {
  entries += part.entries;
  bytes += part.bytes;
  memory_bytes += part.memory_bytes;
  live_buckets += part.live_buckets;
  expired += part.expired;
  evicted += part.evicted;
  rotated += part.rotated;
  events_retained += part.events_retained;
  events_retained_bytes += part.events_retained_bytes;
  events_reclaimed += part.events_reclaimed;
  oldest_retained_us = std::min(oldest_retained_us, part.oldest_retained_us);
  watchers = std::max(watchers, part.watchers);
  changes_retained += part.changes_retained;
  changes_retained_bytes += part.changes_retained_bytes;
  watch_owed += part.watch_owed;
  watch_delivered += part.watch_delivered;
  watch_lost += part.watch_lost;
  watch_left += part.watch_left;
  watch_pending += part.watch_pending;
  // At most: these may be two watches.
  watch_lag += part.watch_lag;
  oldest_unread_us = std::min(oldest_unread_us, part.oldest_unread_us);
  watermark_us = std::min(watermark_us, part.watermark_us);
  lateness.Merge(part.lateness);
  delivery_lateness.Merge(part.delivery_lateness);
  bound_violations += part.bound_violations;
  expired_while_down += part.expired_while_down;
  operations.Add(part.operations);
  for (size_t i = 0; i < kLimitHits; ++i) refused[i] += part.refused[i];
  rate_limited += part.rate_limited;
  backlog_bytes += part.backlog_bytes;
  backlog_limit_bytes += part.backlog_limit_bytes;
  groups_expired = std::max(groups_expired, part.groups_expired);
}

}  // namespace timecache::server

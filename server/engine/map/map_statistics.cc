// The statistics of a map, gathered from all of its parts.

#include <cstdint>
#include <map>

#include "server/engine/map/time_cache_map.h"

namespace timecache::server {

int64_t TimeCacheMap::memory_bytes() const {
  int64_t bytes = retained_bytes();
  if (const auto changes = this->changes()) {
    bytes += changes->GetStatistics().bytes;
  }
  for (const auto& shard : shards_) {
    bytes += shard->GetStatistics().memory_bytes;
  }
  return bytes;
}

NamespaceStatistics TimeCacheMap::GetStatistics(int64_t now_us) {
  RefreshWatermark(now_us);
  NamespaceStatistics statistics;
  const NamespaceSize size = CountedSize();
  statistics.entries = size.entries;
  statistics.bytes = size.bytes;
  // By death, in how many shards its generation is empty.
  std::map<int64_t, uint32_t> empty;
  for (const auto& shard : shards_) {
    const Shard::Statistics part = shard->GetStatistics();
    statistics.memory_bytes += part.memory_bytes;
    statistics.operations.Add(part.operations);
    if (part.empty_death_us != kNeverUs) ++empty[part.empty_death_us];
  }
  statistics.memory_bytes += expiring_.memory_bytes();
  statistics.live_buckets = buckets_.size();
  for (const auto& [death_us, shards] : empty) {
    if (buckets_.ShardsOf(death_us) == shards) --statistics.live_buckets;
  }
  const ExpiryLog::Statistics log = log_.GetStatistics();
  statistics.events_retained = log.events;
  statistics.events_retained_bytes = log.bytes;
  statistics.events_reclaimed = log.reclaimed;
  statistics.oldest_retained_us = log.oldest_us;
  statistics.watch_owed = log.owed;
  statistics.watch_delivered = log.delivered;
  statistics.watch_lost = log.lost;
  statistics.watch_left = log.left;
  statistics.watch_pending = log.pending;
  statistics.watch_lag = log.max_pending;
  statistics.oldest_unread_us = log.oldest_unread_us;
  statistics.watchers = log.cursors + expiring_.cursors();
  if (const auto changes = this->changes()) {
    const ExpiryLog::Statistics kept = changes->GetStatistics();
    statistics.changes_retained = kept.events;
    statistics.changes_retained_bytes = kept.bytes;
    statistics.watchers += kept.cursors;
  }
  statistics.watermark_us = log_.watermark_us();
  statistics.bucket_width_us = BucketWidthUs(options());
  const Sweeper::Statistics swept = sweeper_.GetStatistics();
  const auto died = [&swept](Cause cause) {
    return swept.died_by_cause[static_cast<size_t>(cause)];
  };
  statistics.expired = died(Cause::kExpired);
  statistics.evicted = died(Cause::kEvicted);
  statistics.rotated = died(Cause::kRotated);
  statistics.lateness = swept.lateness;
  {
    absl::MutexLock lock(&deliveries_mu_);
    statistics.delivery_lateness = delivery_lateness_;
  }
  statistics.bound_violations = swept.bound_violations;
  statistics.expired_while_down = swept.expired_while_down;
  statistics.rate_limited = rate_limit_.refused();
  for (size_t i = 0; i < kLimitHits; ++i) {
    statistics.refused[i] = refused_[i].load(std::memory_order_relaxed);
  }
  statistics.backlog_bytes = groups_.account().bytes();
  statistics.backlog_limit_bytes = groups_.account().limit_bytes();
  statistics.groups_expired = groups_.expired();
  return statistics;
}

}  // namespace timecache::server

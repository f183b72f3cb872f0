// What of a map dies when, by the counters of its generations.

#include "server/engine/store/deaths_ahead.h"

#include <algorithm>
#include <array>

#include "server/engine/map/time_cache_map.h"

namespace timecache::server {
namespace {

// Divides [the first death, the last one], or what of that is within the time
// that was asked for, or the time that was, into bars: whole buckets, so that each
// bucket is in one.
void DivideIntoBars(const DeathsQuery& query, int64_t width_us,
                    int64_t first_us, int64_t last_us, DeathsAhead* deaths) {
  if (query.end_us != 0) {
    first_us = query.begin_us + 1;
    last_us = query.end_us;
  } else if (query.within_us != 0) {
    last_us = std::min(last_us, deaths->now_us + query.within_us);
  }
  if (first_us > last_us) return;
  const auto most = static_cast<int64_t>(query.max_bars);
  const auto divide_up = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  deaths->begin_us = (first_us - 1) / width_us * width_us;
  const int64_t buckets = divide_up(last_us - deaths->begin_us, width_us);
  deaths->bar_us = divide_up(buckets, most) * width_us;
  deaths->bars.resize(static_cast<size_t>(
      divide_up(last_us - deaths->begin_us, deaths->bar_us)));
}

// One that was put meanwhile may die before the first.
size_t BarOf(int64_t death_us, const DeathsAhead& deaths) {
  const int64_t since_us = std::max(death_us - deaths.begin_us, int64_t{1});
  return static_cast<size_t>((since_us - 1) / deaths.bar_us);
}

}  // namespace

DeathsAhead TimeCacheMap::GetDeaths(const DeathsQuery& query, int64_t now_us) {
  DeathsAhead deaths;
  deaths.now_us = now_us;
  int64_t last_us = 0;
  for (const auto& shard : shards_) {
    shard->Lock();
    deaths.now_us = std::max(deaths.now_us, shard->SeenLocked());
    last_us = std::max(last_us, shard->YoungestLocked());
    shard->Unlock();
  }
  std::array<Shard::LiveDeath, Shard::kMaxLiveDeaths> some;
  int64_t first_us = kNeverUs;
  for (const auto& shard : shards_) {
    const auto next = absl::MakeSpan(some).subspan(0, 1);
    if (shard->CountLive(deaths.now_us, now_us, next) > 0) {
      first_us = std::min(first_us, next[0].death_us);
    }
  }
  DivideIntoBars(query, BucketWidthUs(options()), first_us, last_us, &deaths);
  for (const auto& shard : shards_) {
    int64_t after_us = deaths.now_us;
    size_t count;
    do {
      count = shard->CountLive(after_us, now_us, absl::MakeSpan(some));
      for (size_t i = 0; i < count; ++i) {
        after_us = some[i].death_us;
        const size_t bar = deaths.bars.empty() ? 0 : BarOf(after_us, deaths);
        DeathsAhead::Amount& to =
            bar < deaths.bars.size() ? deaths.bars[bar] : deaths.later;
        to.entries += some[i].entries;
        to.bytes += some[i].bytes;
      }
    } while (count == some.size());
  }
  return deaths;
}

}  // namespace timecache::server

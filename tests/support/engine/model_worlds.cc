#include "tests/support/engine/model_worlds.h"

#include <cstdint>
#include <string>

#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

WorldOptions World(const std::string& name, int num_buckets, int num_shards) {
  WorldOptions world;
  world.name = name;
  world.map = WithBuckets(2 * kSecond, num_buckets);
  world.map.num_shards = num_shards;
  world.map.retention_bytes = int64_t{1} << 30;
  world.map.idempotency_window_us = 3 * kSecond;
  world.map.idempotency_max_ids = kMaxIdempotencyIds;
  world.map.change_retention_us = kMinTtlUs;
  world.map.change_retention_bytes = int64_t{1} << 30;
  return world;
}

WorldOptions Limited(WorldOptions world, int64_t max_entries, int64_t max_bytes,
                     LimitPolicy policy) {
  world.map.max_entries = max_entries;
  world.map.max_bytes = max_bytes;
  world.map.limit_policy = policy;
  return world;
}

// One for each number of buckets, with what else there is spread over them.
std::vector<WorldOptions> PlainWorlds() {
  std::vector<WorldOptions> worlds;
  worlds.push_back(World("TwoBuckets", 2, 1));
  worlds.push_back(World("StormsThreeBuckets", 3, 4));
  worlds.push_back(World("SevenBucketsSliding", 7, 16));
  worlds.back().map.sliding = true;
  worlds.push_back(World("WidthDoesNotDivideTtl", 7, 1));
  worlds.back().map.ttl_us = 1'999'999;
  worlds.push_back(World("DefaultBuckets", 101, 16));
  worlds.back().keys = 1'000;
  worlds.push_back(World("ThousandBuckets", 1000, 4));
  worlds.back().keys = 300;
  worlds.back().clock_per_mille = 300;
  worlds.push_back(World("HotDyingKeys", 3, 1));
  worlds.back().keys = 4;
  worlds.back().clock_per_mille = 300;
  worlds.push_back(World("ManyKeys", 101, 16));
  worlds.back().keys = 50'000;
  worlds.back().clock_per_mille = 5;
  worlds.back().weight = 2;
  worlds.push_back(World("SameTags", 7, 1));
  worlds.back().same_tags = true;
  worlds.push_back(World("OwnTtls", 101, 4));
  worlds.back().own_ttl_per_mille = 800;
  worlds.push_back(World("NarrowestWidthLongestTtl", 11, 4));
  worlds.back().map.ttl_us = kMinTtlUs;
  worlds.back().map.max_ttl_us = kMaxTtlUs;
  worlds.back().own_ttl_per_mille = 500;
  worlds.push_back(World("GrowingValues", 7, 4));
  worlds.back().keys = 20;
  worlds.back().max_value_bytes = 200;
  worlds.back().map.max_value_bytes = 2'000;
  worlds.push_back(World("LargeValues", 7, 4));
  worlds.back().max_value_bytes = 8 << 10;
  worlds.back().huge_values_per_mille = 3;
  worlds.back().map.retention_bytes = int64_t{4} << 30;
  worlds.back().weight = 0.5;
  return worlds;
}

std::vector<WorldOptions> SpecialWorlds() {
  std::vector<WorldOptions> worlds;
  worlds.push_back(
      Limited(World("RejectsEntries", 3, 4), 60, 0, LimitPolicy::kReject));
  worlds.push_back(
      Limited(World("RejectsBytes", 101, 1), 0, 3'000, LimitPolicy::kReject));
  worlds.push_back(Limited(World("EvictsForEntries", 7, 16), 40, 0,
                           LimitPolicy::kEvictOldest));
  worlds.push_back(Limited(World("EvictsForBytes", 101, 4), 0, 3'000,
                           LimitPolicy::kEvictOldest));
  worlds.back().max_value_bytes = 500;
  worlds.push_back(Limited(World("EvictsForBothWithManyBuckets", 1000, 1), 50,
                           2'500, LimitPolicy::kEvictOldest));
  worlds.push_back(Limited(World("EvictsEntriesOfOneBucket", 2, 4), 40, 0,
                           LimitPolicy::kEvictOldest));
  worlds.back().map.ttl_us = 60 * kSecond;
  worlds.back().own_ttl_per_mille = 5;
  worlds.push_back(Limited(World("EvictsBytesOfOneBucket", 2, 1), 0, 20'000,
                           LimitPolicy::kEvictOldest));
  worlds.back().map.ttl_us = 60 * kSecond;
  worlds.back().max_value_bytes = 2'000;
  worlds.back().own_ttl_per_mille = 5;
  worlds.push_back(World("LiveChanges", 7, 4));
  worlds.back().updates = true;
  worlds.push_back(Limited(World("LiveChangesOfLimits", 101, 16), 50, 4'000,
                           LimitPolicy::kEvictOldest));
  worlds.back().updates = true;
  worlds.push_back(World("SlowWatcher", 7, 4));
  worlds.back().slow_watcher = true;
  worlds.back().max_value_bytes = 8 << 10;
  worlds.back().map.retention_bytes = kMinRetentionBytes;
  worlds.push_back(World("NoRetention", 3, 4));
  worlds.back().map.retention_us = 0;
  return worlds;
}

}  // namespace

std::vector<WorldOptions> ModelWorlds() {
  std::vector<WorldOptions> worlds = PlainWorlds();
  for (WorldOptions& world : SpecialWorlds()) worlds.push_back(world);
  return worlds;
}

}  // namespace timecache::server

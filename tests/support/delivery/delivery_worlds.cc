#include "tests/support/delivery/delivery_worlds.h"

#include <cstdint>
#include <string>

#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

DeliveryWorldOptions DeliveryWorldNamed(const std::string& name,
                                        int num_buckets, int num_shards) {
  DeliveryWorldOptions world;
  world.name = name;
  world.map = WithBuckets(2 * kSecond, num_buckets);
  world.map.num_shards = num_shards;
  world.map.retention_us = 5 * kSecond;
  return world;
}

// So large that a few hundred fill the smallest retention and backlog.
DeliveryWorldOptions WithLargeValues(DeliveryWorldOptions world) {
  world.keys = 300;
  world.max_value_bytes = 16 << 10;
  world.map.retention_bytes = kMinRetentionBytes;
  return world;
}

DeliveryWorldOptions WithGroups(DeliveryWorldOptions world, int groups) {
  world.groups = groups;
  world.watchers = 2;
  world.group.group.ack_timeout_us = kSecond;
  return world;
}

std::vector<DeliveryWorldOptions> WatchersWorlds() {
  std::vector<DeliveryWorldOptions> worlds;
  worlds.push_back(DeliveryWorldNamed("Watchers", 7, 4));
  worlds.push_back(DeliveryWorldNamed("WatchersOfTwoBuckets", 2, 1));
  worlds.push_back(DeliveryWorldNamed("WatchersOfManyBuckets", 1000, 16));
  worlds.push_back(
      WithLargeValues(DeliveryWorldNamed("WatchersThatAreTooSlow", 7, 4)));
  worlds.push_back(
      WithLargeValues(DeliveryWorldNamed("RetentionChanges", 7, 4)));
  worlds.back().retention_changes = true;
  worlds.push_back(
      WithLargeValues(DeliveryWorldNamed("MemoryRunsShort", 7, 4)));
  worlds.back().squeezes = true;
  worlds.push_back(DeliveryWorldNamed("NothingIsRetained", 7, 4));
  worlds.back().map.retention_us = 0;
  worlds.back().watchers = 2;
  worlds.back().recorded = false;
  worlds.push_back(
      DeliveryWorldNamed("RetentionChangesAndNobodyIsThere", 7, 4));
  worlds.back().map.retention_us = kSecond;
  worlds.back().watchers = 2;
  worlds.back().recorded = false;
  worlds.back().retention_changes = true;
  worlds.push_back(DeliveryWorldNamed("Evictions", 7, 4));
  worlds.back().map.max_entries = 30;
  worlds.back().map.limit_policy = LimitPolicy::kEvictOldest;
  return worlds;
}

std::vector<DeliveryWorldOptions> GroupsWorlds() {
  std::vector<DeliveryWorldOptions> worlds;
  worlds.push_back(WithGroups(DeliveryWorldNamed("OneGroup", 7, 4), 1));
  worlds.push_back(WithGroups(DeliveryWorldNamed("ThreeGroups", 101, 16), 3));
  worlds.push_back(WithGroups(DeliveryWorldNamed("GroupOfHotKeys", 3, 1), 1));
  worlds.back().keys = 3;
  worlds.back().clock_per_mille = 300;
  worlds.push_back(
      WithGroups(DeliveryWorldNamed("GroupThatTimesOut", 7, 4), 1));
  worlds.back().group.group.ack_timeout_us = kMinAckTimeoutUs;
  worlds.back().clock_per_mille = 250;
  worlds.push_back(WithGroups(DeliveryWorldNamed("DeadLetters", 7, 4), 2));
  worlds.back().map.dead_letter_namespace = "dead";
  worlds.back().group.dead_letters = true;
  worlds.back().group.group.max_attempts = 2;
  worlds.back().group.refuse_per_mille = 700;
  worlds.push_back(WithGroups(
      WithLargeValues(DeliveryWorldNamed("GroupThatFallsBehind", 7, 4)), 2));
  worlds.back().group.group.max_backlog_bytes = kMinBacklogBytes;
  worlds.back().group.max_members = 2;
  worlds.push_back(worlds.back());
  worlds.back().name = "DeadLettersOfAGroupThatFallsBehind";
  worlds.back().map.dead_letter_namespace = "dead";
  worlds.back().group.dead_letters = true;
  worlds.back().group.refuse_per_mille = 700;
  worlds.push_back(WithGroups(
      WithLargeValues(DeliveryWorldNamed("MemoryRunsShortOfGroups", 7, 4)), 2));
  worlds.back().squeezes = true;
  worlds.back().group.max_members = 2;
  worlds.push_back(
      WithGroups(DeliveryWorldNamed("GroupAndEvictions", 7, 4), 1));
  worlds.back().map.max_entries = 30;
  worlds.back().map.limit_policy = LimitPolicy::kEvictOldest;
  worlds.push_back(
      WithGroups(DeliveryWorldNamed("GroupAndEvictionsByEntry", 2, 4), 1));
  worlds.back().map.ttl_us = 20 * kSecond;
  worlds.back().map.max_entries = 30;
  worlds.back().map.limit_policy = LimitPolicy::kEvictOldest;
  worlds.push_back(WithGroups(DeliveryWorldNamed("GroupsOfSomeKeys", 7, 4), 2));
  worlds.back().group.group.key_prefix = "k1";
  worlds.back().map.dead_letter_namespace = "dead";
  worlds.back().group.dead_letters = true;
  worlds.push_back(WithGroups(
      WithLargeValues(DeliveryWorldNamed("GroupOfSomeKeysFallsBehind", 7, 4)),
      1));
  worlds.back().group.group.key_prefix = "k2";
  worlds.back().group.group.max_backlog_bytes = kMinBacklogBytes;
  worlds.back().group.max_members = 1;
  worlds.push_back(
      WithGroups(DeliveryWorldNamed("GroupsOfOneActiveMember", 7, 4), 2));
  worlds.back().group.group.single_active = true;
  worlds.back().clock_per_mille = 250;
  worlds.push_back(worlds.back());
  worlds.back().name = "OneActiveMemberComesAndGoes";
  worlds.back().group.single_active_changes = true;
  worlds.back().group.group.key_prefix = "k1";
  worlds.push_back(
      WithGroups(DeliveryWorldNamed("GroupAndRejections", 7, 4), 1));
  worlds.back().map.max_entries = 30;
  return worlds;
}

}  // namespace

std::vector<DeliveryWorldOptions> DeliveryWorlds() {
  std::vector<DeliveryWorldOptions> worlds = WatchersWorlds();
  for (DeliveryWorldOptions& world : GroupsWorlds()) worlds.push_back(world);
  return worlds;
}

}  // namespace timecache::server

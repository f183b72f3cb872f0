#include "server/engine/map/items_by_shard.h"

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

// `count` items whose hashes spread over 16 shards.
std::vector<Shard::Item> SomeItems(uint64_t count) {
  std::vector<Shard::Item> items;
  for (uint64_t i = 0; i < count; ++i) {
    items.push_back({nullptr, i * 0x9e3779b97f4a7c15, nullptr});
  }
  return items;
}

std::vector<uint64_t> HashesOf(const ItemsByShard& items, size_t shard) {
  std::vector<uint64_t> hashes;
  for (const Shard::Item& item : items.of(shard)) hashes.push_back(item.hash);
  return hashes;
}

TEST(ItemsByShardTest, EachShardHasItsItemsInOrder) {
  const std::vector<Shard::Item> all = SomeItems(ItemsByShard::kMaxItems);
  std::map<size_t, std::vector<uint64_t>> expected;
  for (const Shard::Item& item : all) {
    expected[item.hash & 15].push_back(item.hash);
  }
  const ItemsByShard items(all, 15);
  EXPECT_EQ(items.shards().size(), expected.size());
  for (const auto& [shard, hashes] : expected) {
    EXPECT_EQ(HashesOf(items, shard), hashes);
  }
}

TEST(ItemsByShardTest, ListsOnlyShardsWithItems) {
  const std::vector<Shard::Item> all = {{nullptr, 0x10000000002, nullptr},
                                        {nullptr, 5, nullptr},
                                        {nullptr, 2, nullptr}};
  ItemsByShard items(all, 255);
  EXPECT_THAT(
      std::vector<uint16_t>(items.shards().begin(), items.shards().end()),
      testing::UnorderedElementsAre(2, 5));
  EXPECT_TRUE(ItemsByShard({}, 255).shards().empty());
}

TEST(ItemsByShardTest, BatchesBeginWithDifferentShards) {
  std::vector<Shard::Item> all = SomeItems(100);
  std::set<uint16_t> firsts;
  for (uint64_t high = 0; high < 16; ++high) {
    all[0].hash = high << 32;
    firsts.insert(ItemsByShard(all, 15).shards().front());
  }
  EXPECT_EQ(firsts.size(), 16u);
}

TEST(ItemsByShardTest, WhatIsTakenComesBackBehindTheOthers) {
  const std::vector<Shard::Item> all = SomeItems(100);
  ItemsByShard items(all, 15);
  const std::vector<uint16_t> before(items.shards().begin(),
                                     items.shards().end());
  const uint16_t taken = before[3];
  const std::vector<uint64_t> hashes = HashesOf(items, taken);
  ASSERT_GT(hashes.size(), 1u);
  items.TakeShards([&](uint16_t s) { return s == taken; });
  EXPECT_EQ(items.shards().size(), before.size() - 1);
  items.Drop(taken, 1);
  items.Return(taken);
  EXPECT_EQ(items.shards().back(), taken);
  EXPECT_EQ(HashesOf(items, taken),
            std::vector<uint64_t>(hashes.begin() + 1, hashes.end()));
}

}  // namespace
}  // namespace timecache::server

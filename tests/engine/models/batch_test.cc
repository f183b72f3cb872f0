// Batches: as if their operations came one after the other.

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/shard/shard.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int64_t kNowUs = 1'000'000'000;

void ExpectSame(const Result& batch, const Result& single) {
  EXPECT_EQ(batch.status, single.status);
  EXPECT_EQ(batch.found, single.found);
  EXPECT_EQ(batch.version == 0, single.version == 0);
  ASSERT_EQ(batch.has_entry, single.has_entry);
  if (!batch.has_entry) return;
  EXPECT_EQ(batch.entry.value, single.entry.value);
  EXPECT_EQ(batch.entry.put_us, single.entry.put_us);
  EXPECT_EQ(batch.entry.deadline_us, single.entry.deadline_us);
}

// Random batches on one map, the same operations one by one on another.
void CompareWithSingles(const NamespaceOptions& options, int key_space) {
  constexpr int kBatches = 400;
  TimeCacheMap batched("map", options, nullptr, 0);
  TimeCacheMap single("map", options, nullptr, 0);
  std::mt19937 random(7);
  int64_t now_us = kNowUs;
  // Results are used again, with what the last batch left in them.
  std::vector<Result> results(1'500);
  for (int batch = 0; batch < kBatches; ++batch) {
    const size_t size = random() % 8 == 0 ? 1'500 : random() % 70;
    std::vector<std::string> keys(size);
    std::vector<std::string> values(size);
    std::vector<Operation> ops(size);
    for (size_t i = 0; i < size; ++i) {
      keys[i] = std::to_string(random() % static_cast<unsigned>(key_space));
      values[i] = std::string(random() % 100, 'v') + keys[i];
      switch (random() % 6) {
        case 0:
          ops[i] = Operation::Get(keys[i]);
          break;
        case 1:
          ops[i] = Operation::Remove(keys[i]);
          ops[i].return_previous = true;
          break;
        case 2:
          ops[i] = Operation::Touch(keys[i]);
          break;
        case 3:
          ops[i] = Operation::Put(keys[i], values[i]);
          ops[i].condition = Condition::kIfAbsent;
          break;
        case 4:
          // Now and then a TTL that is refused.
          ops[i] = Operation::Put(keys[i], values[i])
                       .WithTtl(static_cast<int64_t>(random() % 5'000'000));
          break;
        default:
          ops[i] = Operation::Put(keys[i], values[i]);
          ops[i].return_previous = true;
      }
    }
    batched.ApplyBatch(ops, now_us, absl::MakeSpan(results).subspan(0, size));
    for (size_t i = 0; i < size; ++i) {
      SCOPED_TRACE(testing::Message() << "batch " << batch << " op " << i);
      ExpectSame(results[i], single.Apply(ops[i], now_us));
      if (testing::Test::HasFailure()) return;
    }
    now_us += random() % 400'000;
    const auto size_batched = batched.GetSize(now_us);
    const auto size_single = single.GetSize(now_us);
    ASSERT_EQ(size_batched.entries, size_single.entries);
    ASSERT_EQ(size_batched.bytes, size_single.bytes);
    while (batched.Sweep(now_us, 1'000)) {
    }
    while (single.Sweep(now_us, 1'000)) {
    }
  }
}

// With one shard the operations keep their order, so that the same ones meet
// the limit.
TEST(BatchTest, EqualsSinglesAtALimit) {
  for (LimitPolicy policy : {LimitPolicy::kReject, LimitPolicy::kEvictOldest}) {
    NamespaceOptions options;
    options.ttl_us = 3'000'000;
    options.num_shards = 1;
    options.max_entries = 300;
    options.limit_policy = policy;
    CompareWithSingles(options, 2'000);
  }
}

TEST(BatchTest, WhatHasNoRoomInTheAnswerIsNotApplied) {
  const std::string large(ResponseBudget::kMaxBytes - 1, 'v');
  NamespaceOptions options;
  options.max_value_bytes = kMaxValueBytesLimit;
  options.num_shards = 1;
  TimeCacheMap map("map", options, nullptr, 0);
  map.Apply(Operation::Put("a", large), kNowUs);
  map.Apply(Operation::Put("b", "22"), kNowUs);
  Operation replace = Operation::Put("b", "new");
  replace.return_previous = true;
  Operation remove = Operation::Remove("b");
  remove.return_previous = true;
  Operation touch = Operation::Get("b");
  touch.touch = true;
  const std::vector<Operation> ops = {
      Operation::Get("a"), replace, remove, touch, Operation::Put("c", "1"),
      Operation::Get("c")};
  std::vector<Result> results(ops.size());
  const auto size = map.GetSize(kNowUs);
  const uint64_t version = map.Apply(Operation::Get("b"), kNowUs).entry.version;
  map.ApplyBatch(ops, kNowUs, absl::MakeSpan(results));
  EXPECT_EQ(results[0].entry.value, large);
  for (int i : {1, 2, 3}) {
    EXPECT_EQ(ReasonOf(results[i].status), Reason::kMaxResponseBytes) << i;
    EXPECT_FALSE(results[i].has_entry);
  }
  EXPECT_TRUE(results[4].status.ok());
  EXPECT_EQ(results[5].entry.value, "1") << "one byte was left";
  EXPECT_EQ(map.Apply(Operation::Get("b"), kNowUs).entry.version, version);
  EXPECT_EQ(map.GetSize(kNowUs).bytes, size.bytes + 2);
}

TEST(BatchTest, OneAnswerMayBeLargerThanTheRoom) {
  const std::string large(ResponseBudget::kMaxBytes + 1, 'v');
  NamespaceOptions options;
  options.max_value_bytes = kMaxValueBytesLimit;
  TimeCacheMap map("map", options, nullptr, 0);
  map.Apply(Operation::Put("a", large), kNowUs);
  const std::vector<Operation> ops = {Operation::Get("a"), Operation::Get("a")};
  std::vector<Result> results(ops.size());
  map.ApplyBatch(ops, kNowUs, absl::MakeSpan(results));
  EXPECT_EQ(results[0].entry.value, large);
  EXPECT_EQ(ReasonOf(results[1].status), Reason::kMaxResponseBytes);
}

// Keys that come in the order of one map's index are in no order for another's:
// each map hashes by a seed of its own.
// Each renewal copies the value to another bucket: a larger one would move with
// its segment.
TEST(BatchTest, OperationsThatCopyMuchAreNotUnderOneLock) {
  constexpr size_t kValueBytes = 200 << 10;
  Usage usage(0, 0);
  LiveBuckets buckets;
  VersionSource versions(kStartUs);
  Shard shard(WithBuckets(30 * kSecond, 4), &usage, &buckets, &versions,
              KeyHash(1));
  ResponseBudget room;
  Result put;
  const std::string value(kValueBytes, 'v');
  shard.Apply(Operation::Put("key", value), KeyHash(1)("key"), kStartUs, &room,
              &put);
  std::vector<Operation> ops;
  for (size_t i = 0; i < Shard::kMaxLockItems; ++i) {
    ops.push_back(
        Operation::Touch("key").WithTtl((i % 2 == 0 ? 60 : 90) * kSecond));
  }
  std::vector<Result> results(ops.size());
  std::vector<Shard::Item> items;
  for (size_t i = 0; i < ops.size(); ++i) {
    items.push_back({&ops[i], KeyHash(1)("key"), &results[i]});
  }
  int64_t new_death_us = kNeverUs;
  shard.Lock();
  const size_t done = shard.ApplyLocked(items, kStartUs, &room, &new_death_us);
  shard.Unlock();
  EXPECT_GE(done, 1u);
  EXPECT_LE(done, 6u);
}

TEST(BatchTest, OperationsThatCopyMuchAreAllApplied) {
  MapHarness harness(WithBuckets(30 * kSecond, 4));
  const std::string value(300'000, 'v');
  std::vector<Operation> ops;
  std::vector<std::string> keys;
  for (int i = 0; i < 10; ++i) keys.push_back(absl::StrCat("key", i));
  for (const std::string& key : keys) ops.push_back(Operation::Put(key, value));
  for (int round = 1; round <= 60; ++round) {
    for (const std::string& key : keys) {
      ops.push_back(Operation::Touch(key).WithTtl(round * 60 * kSecond));
    }
  }
  std::vector<Result> results(ops.size());
  harness.map().ApplyBatch(ops, harness.now_us(), absl::MakeSpan(results));
  for (const Result& result : results) ASSERT_TRUE(result.status.ok());
  for (const std::string& key : keys) {
    const Result got = harness.map().Apply(Operation::Get(key),
                                           harness.now_us() + 3'599 * kSecond);
    ASSERT_TRUE(got.has_entry);
    EXPECT_EQ(got.entry.value, value);
  }
}

}  // namespace
}  // namespace timecache::server

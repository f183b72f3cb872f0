// Batches that are applied in turns.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {
namespace {

constexpr int64_t kNowUs = int64_t{1'700'000'000} * kMicrosPerSecond;
constexpr size_t kBatchOperations = 4096;

class BatchTurnsTest : public ::testing::Test {
 protected:
  static NamespaceOptions Options() {
    NamespaceOptions options;
    options.ttl_us = 3600 * kMicrosPerSecond;
    options.num_shards = 4;
    return options;
  }

  // Applies `operations` in turns; returns how many there were.
  int Turns(const std::vector<Operation>& operations,
            std::vector<Result>* results) {
    results->resize(operations.size());
    BatchProgress progress;
    int turns = 0;
    while (!progress.done) {
      const uint64_t before = progress.room.copied();
      map_.ApplyBatch(operations, kNowUs, absl::MakeSpan(*results), &progress);
      most_copied_ = std::max(most_copied_, progress.room.copied() - before);
      ++turns;
    }
    return turns;
  }

  TimeCacheMap map_{"a", Options(), /*server_usage=*/nullptr, kNowUs};
  uint64_t most_copied_ = 0;
};

// Values of 100 kB have no segment of their own that could move with them.
TEST_F(BatchTurnsTest, RenewalsOfLargeValuesTakeManyTurns) {
  const std::string value(100'000, 'x');
  for (int i = 0; i < 64; ++i) {
    map_.Apply(Operation::Put(absl::StrCat("key", i), value), kNowUs);
  }
  std::vector<std::string> keys;
  for (size_t i = 0; i < kBatchOperations; ++i) {
    keys.push_back(absl::StrCat("key", i % 64));
  }
  std::vector<Operation> operations;
  for (size_t i = 0; i < kBatchOperations; ++i) {
    operations.push_back(Operation::Touch(keys[i]).WithTtl(
        Options().ttl_us * (2 + static_cast<int64_t>(i / 64 % 2))));
  }
  std::vector<Result> results;
  EXPECT_GT(Turns(operations, &results), 20);
  // A turn ends with the operation that has copied enough, on each shard.
  EXPECT_LE(most_copied_, 2 * BatchProgress::kTurnCopiedBytes);
  for (const Result& result : results) {
    ASSERT_TRUE(result.status.ok() && result.found && !result.waits);
  }
  EXPECT_EQ(map_.Apply(Operation::Get("key0"), kNowUs).entry.value, value);
}

TEST_F(BatchTurnsTest, OperationsOnOneKeyKeepTheirOrder) {
  std::vector<std::string> keys;
  std::vector<std::string> pieces;
  for (size_t i = 0; i < kBatchOperations; ++i) {
    keys.push_back(absl::StrCat("log", i % 8));
    pieces.push_back(absl::StrCat(i, ",", std::string(i % 100, '.')));
  }
  std::vector<Operation> operations;
  std::vector<std::string> expected(8);
  for (size_t i = 0; i < kBatchOperations; ++i) {
    operations.push_back(
        Operation::Append(keys[i], pieces[i]).WithTtl(Options().ttl_us * 2));
    operations.back().touch = i % 3 == 0;
    expected[i % 8] += pieces[i];
  }
  for (int i = 0; i < 8; ++i) {
    expected[static_cast<size_t>(i)] =
        std::string(90'000, 'x') + expected[static_cast<size_t>(i)];
    map_.Apply(Operation::Put(absl::StrCat("log", i), std::string(90'000, 'x')),
               kNowUs);
  }
  std::vector<Result> results;
  Turns(operations, &results);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(map_.Apply(Operation::Get(absl::StrCat("log", i)), kNowUs)
                    .entry.value == expected[static_cast<size_t>(i)])
        << i;
  }
}

TEST_F(BatchTurnsTest, GathersReadFewOfAKeysParts) {
  std::vector<Gathering> gatherings(1023);
  std::vector<std::string> names;
  for (size_t i = 0; i < gatherings.size(); ++i) {
    names.push_back(absl::StrCat("part", i));
  }
  std::vector<Operation> operations;
  for (size_t i = 0; i < gatherings.size(); ++i) {
    ASSERT_TRUE(gatherings[i].Set(names[i], 1024, {}).ok());
    operations.push_back(Operation::Gather("join", &gatherings[i], "value"));
  }
  std::vector<Result> results;
  Turns(operations, &results);
  operations.assign(kBatchOperations, operations[0]);
  EXPECT_EQ(Turns(operations, &results), 1);
  for (const Result& result : results) ASSERT_TRUE(result.duplicate);
}

TEST_F(BatchTurnsTest, SmallOnesAreDoneInOne) {
  const std::vector<Operation> operations(kBatchOperations,
                                          Operation::Put("k", "v"));
  std::vector<Result> results;
  EXPECT_EQ(Turns(operations, &results), 1);
  EXPECT_EQ(Turns({}, &results), 1);
}

}  // namespace
}  // namespace timecache::server

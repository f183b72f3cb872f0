// How deaths become events: batches, sweeps in steps, watermarks, watchers'
// starts and the schedule of whoever drives a map.

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using Start = ExpiryLog::Start;

TEST(SweepTest, AWholeBucketOfAllShardsIsOneBatch) {
  MapHarness harness(Tens());
  for (int i = 0; i < 1'000; ++i) harness.Put(absl::StrCat("key", i), "v");
  harness.Pass(10 * kSecond);
  EXPECT_THAT(harness.ReadEvents().batch_sizes, ElementsAre(1'000));
}

TEST(SweepTest, ABucketLargerThanABatchComesInSeveralOfOneDeath) {
  constexpr int kEntries = 3 * kMaxEventBatchEvents;
  MapHarness harness(Tens());
  for (int i = 0; i < kEntries; ++i) harness.Put(absl::StrCat("key", i), "v");
  harness.Pass(10 * kSecond);
  harness.map().Advance(harness.now_us());
  EXPECT_FALSE(harness.map().Sweep(harness.now_us(), kEntries + 1));
  const Reading reading = harness.ReadEvents();
  EXPECT_THAT(reading.batch_sizes,
              ElementsAre(kMaxEventBatchEvents, kMaxEventBatchEvents,
                          kMaxEventBatchEvents));
  for (const DeliveredEvent& told : reading.events) {
    ASSERT_EQ(told.death_us, kStartUs + 10 * kSecond);
  }
}

TEST(SweepTest, SweepGoesInStepsAndTheWatermarkWaitsForTheLast) {
  constexpr int kEntries = 1'000;
  MapHarness harness(Tens());
  for (int i = 0; i < kEntries; ++i) harness.Put(absl::StrCat("key", i), "v");
  const auto cursor = harness.Subscribe(Start::kEarliest);
  harness.Pass(10 * kSecond);
  harness.map().Advance(harness.now_us());
  int steps = 1;
  uint64_t told = 0;
  for (; harness.map().Sweep(harness.now_us(), 10); ++steps) {
    const Reading reading = ReadAll(cursor.get());
    told += reading.events.size();
    EXPECT_LT(reading.watermark_us, harness.now_us());
    harness.map().RefreshWatermark(harness.now_us());
    EXPECT_LT(harness.map().watermark_us(), harness.now_us());
  }
  EXPECT_GE(steps, kEntries / 64)
      << "a step walked far more than it was told to";
  harness.map().RefreshWatermark(harness.now_us());
  const Reading rest = ReadAll(cursor.get());
  EXPECT_EQ(told + rest.events.size(), static_cast<uint64_t>(kEntries));
  EXPECT_EQ(rest.watermark_us, harness.now_us());
}

// It says when it was told, and nobody waits for what the next step will find.
TEST(SweepTest, WhatAStepFoundIsToldAtItsEnd) {
  MapHarness harness(Tens());
  for (int i = 0; i < 100; ++i) harness.Put(absl::StrCat("key", i), "v");
  const auto cursor = harness.Subscribe(Start::kEarliest);
  harness.Pass(10 * kSecond);
  harness.map().Advance(harness.now_us());
  const int64_t first_us = harness.now_us();
  EXPECT_TRUE(harness.map().Sweep(first_us, 60));
  EXPECT_FALSE(harness.map().Sweep(first_us + 5, 60));
  const ExpiryLog::Chunk chunk = cursor->Read(1 << 20);
  ASSERT_EQ(chunk.batches.size(), 2u);
  EXPECT_EQ(chunk.batches[0]->size(), 60);
  EXPECT_EQ(chunk.batches[0]->death().published_us, first_us);
  EXPECT_EQ(chunk.batches[1]->size(), 40);
  EXPECT_EQ(chunk.batches[1]->death().published_us, first_us + 5);
}

// A step that takes long leaves it for the next one, which knows the time.
TEST(SweepTest, WhatDiesDuringAStepIsNotDeliveredBeforeItDied) {
  constexpr int64_t kStepUs = 13'000;
  const int64_t began_us = kStartUs + 10 * kSecond;
  const int64_t killed_us = began_us + kStepUs;
  enum class During { kRotate, kEvict, kAdvance };
  for (const During during :
       {During::kRotate, During::kEvict, During::kAdvance}) {
    SCOPED_TRACE(static_cast<int>(during));
    NamespaceOptions options = WithBuckets(10 * kSecond, 10'001);
    options.max_entries = 2;
    options.limit_policy = LimitPolicy::kEvictOldest;
    TimeCacheMap map("map", options, nullptr, kStartUs);
    const auto cursor = map.Subscribe(Start::kNow, kStartUs, [] {});
    map.Apply(Operation::Put("expires", "v"), kStartUs);
    const int64_t next_ttl_us =
        10 * kSecond + (during == During::kAdvance ? kStepUs / 2 : kSecond);
    map.Apply(Operation::Put("next", "v").WithTtl(next_ttl_us), kStartUs);
    map.Advance(began_us);
    // The step has read its time, began_us, and no record yet. Watchers may have
    // been promised all up to here.
    map.RefreshWatermark(killed_us);
    if (during == During::kRotate) {
      EXPECT_EQ(map.Rotate(killed_us), 1);
    } else if (during == During::kEvict) {
      map.Apply(Operation::Put("more", "v"), killed_us);
      map.Apply(Operation::Put("too many", "v"), killed_us);
    }
    EXPECT_TRUE(map.Sweep(began_us, 1'000)) << "something is left";
    const int64_t next_us = killed_us + 50;
    EXPECT_FALSE(map.Sweep(next_us, 1'000));
    const Reading reading = ReadAll(cursor.get());
    ASSERT_EQ(reading.events.size(), 2u);
    for (const DeliveredEvent& told : reading.events) {
      EXPECT_GE(told.published_us, told.death_us) << told.key;
      EXPECT_GE(told.death_us, told.put_us) << told.key;
    }
    EXPECT_EQ(reading.events[0].key, "expires");
    EXPECT_EQ(reading.events[0].published_us, began_us);
    EXPECT_EQ(reading.events[1].published_us, next_us);
    if (during != During::kAdvance) {
      EXPECT_EQ(reading.events[1].death_us, killed_us + kKillTickUs);
    }
  }
}

// Some of the bucket's batches are in the log by then, others are not: it is
// dead as a whole, and none of it is the new watcher's.
TEST(SweepTest, AWatchFromNowAmidTheSweepOfABucketSkipsTheRestOfIt) {
  constexpr int kEntries = 3 * kMaxEventBatchEvents;
  MapHarness harness(Tens());
  for (int i = 0; i < kEntries; ++i) harness.Put(absl::StrCat("key", i), "v");
  harness.Pass(5 * kSecond);
  harness.Put("later", "v");
  harness.Pass(5 * kSecond);
  harness.map().Advance(harness.now_us());
  for (int swept = 0; swept < kEntries / 2; swept += 1'000) {
    EXPECT_TRUE(harness.map().Sweep(harness.now_us(), 1'000));
  }
  EXPECT_GT(harness.Statistics().events_retained, 0u);
  const auto cursor = harness.Subscribe(Start::kNow);
  harness.Sweep();
  Reading reading = ReadAll(cursor.get());
  EXPECT_TRUE(reading.events.empty());
  EXPECT_EQ(reading.lost, 0u);
  harness.Pass(5 * kSecond);
  harness.Sweep();
  reading = ReadAll(cursor.get());
  EXPECT_THAT(reading.Texts(), ElementsAre("later=v"));
  EXPECT_EQ(reading.lost, 0u);
}

TEST(SweepTest, StatisticsCountDeathsAndLateness) {
  MapHarness harness(Tens());
  for (int i = 0; i < 10; ++i) harness.Put(absl::StrCat("key", i), "v");
  harness.Pass(10 * kSecond + 700);
  harness.Sweep();
  EXPECT_EQ(harness.Statistics().expired, 10u);
  EXPECT_EQ(harness.Statistics().bound_violations, 0u);
  EXPECT_EQ(harness.Statistics().lateness.max_us(), 700);
  harness.Put("late", "v");
  harness.Pass(12 * kSecond);
  harness.Sweep();
  const NamespaceStatistics statistics = harness.Statistics();
  EXPECT_EQ(statistics.expired, 11u);
  EXPECT_EQ(statistics.bound_violations, 1u);
  EXPECT_GE(statistics.lateness.max_us(), kSecond);
  EXPECT_EQ(statistics.bucket_width_us, kSecond);
  EXPECT_EQ(statistics.watermark_us, harness.now_us());
  EXPECT_EQ(statistics.events_retained, 11u);
  EXPECT_EQ(statistics.watchers, 1);
}

TEST(SweepTest, WhileSomethingWaitsForTheSweepTheMapIsDue) {
  MapHarness harness(Tens());
  harness.Put("key", "v");
  harness.Put("other", "v");
  EXPECT_EQ(harness.map().NextDueUs(harness.now_us()), kStartUs + 10 * kSecond);
  harness.Pass(10 * kSecond);
  harness.map().Advance(harness.now_us());
  EXPECT_LE(harness.map().NextDueUs(harness.now_us()), harness.now_us());
  harness.Sweep();
  EXPECT_GT(harness.map().NextDueUs(harness.now_us()), harness.now_us());
}

TEST(SweepTest, OnceEverythingIsDeadAndTrimmedNothingIsDue) {
  NamespaceOptions options = Tens();
  options.retention_us = 60 * kSecond;
  MapHarness harness(options);
  harness.Put("key", "v");
  harness.Pass(10 * kSecond);
  harness.ReadEvents();
  const int64_t due_us = harness.map().NextDueUs(harness.now_us());
  EXPECT_GE(due_us, harness.now_us() + 60 * kSecond);
  EXPECT_LE(due_us, harness.now_us() + 61 * kSecond)
      << "when the event is too old";
  harness.GoTo(due_us + 1);
  harness.Sweep();
  EXPECT_EQ(harness.Statistics().events_retained, 0u);
  EXPECT_EQ(harness.map().NextDueUs(harness.now_us()), kNeverUs);
}

}  // namespace
}  // namespace timecache::server

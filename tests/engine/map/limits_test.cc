// Limits, eviction, rotation by hand and live changes of the options.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

NamespaceOptions Limited(int64_t max_entries, int64_t max_bytes,
                         LimitPolicy policy) {
  NamespaceOptions options = Tens();
  options.max_entries = max_entries;
  options.max_bytes = max_bytes;
  options.limit_policy = policy;
  return options;
}

void ExpectFull(const Result& result, Reason reason) {
  EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted)
      << result.status;
  EXPECT_EQ(ReasonOf(result.status), reason);
  EXPECT_EQ(result.version, 0u);
}

TEST(LimitsTest, AFullMapRefusesBytesButNotFewerOfThem) {
  MapHarness harness(Limited(0, 20, LimitPolicy::kReject));
  EXPECT_TRUE(harness.Put("a", std::string(9, 'v')).status.ok());
  EXPECT_TRUE(harness.Put("b", std::string(9, 'v')).status.ok());
  ExpectFull(harness.Put("c", ""), Reason::kMaxBytes);
  ExpectFull(harness.Put("a", std::string(10, 'v')), Reason::kMaxBytes);
  EXPECT_EQ(harness.Get("a"), std::string(9, 'v'));
  EXPECT_TRUE(harness.Put("a", std::string(8, 'v')).status.ok());
  EXPECT_TRUE(harness.Put("c", "").status.ok());
  EXPECT_EQ(harness.Bytes(), 20);
}

TEST(LimitsTest, AConditionIsJudgedBeforeALimit) {
  MapHarness harness(Limited(1, 0, LimitPolicy::kReject));
  harness.Put("a", "1");
  Operation op = Operation::Put("b", "1");
  op.condition = Condition::kIfPresent;
  EXPECT_EQ(ReasonOf(harness.Apply(op).status), Reason::kKeyNotFound);
  op.condition = Condition::kIfAbsent;
  ExpectFull(harness.Apply(op), Reason::kMaxEntries);
}

// Options whose one bucket takes all that a test puts.
NamespaceOptions OneBucket(int64_t max_entries, int64_t max_bytes) {
  NamespaceOptions options = WithBuckets(3600 * kSecond, 2);
  options.max_entries = max_entries;
  options.max_bytes = max_bytes;
  options.limit_policy = LimitPolicy::kEvictOldest;
  options.max_value_bytes = kMaxValueBytesLimit;
  return options;
}

TEST(LimitsTest, InOneFullBucketEachPutEvictsTheOldestEntry) {
  MapHarness harness(OneBucket(100, 0));
  for (int i = 0; i < 300; ++i) {
    harness.Pass(1);
    ASSERT_TRUE(harness.Put(absl::StrCat("key", i), "v").status.ok());
    ASSERT_EQ(harness.Entries(), std::min(i + 1, 100));
    ASSERT_TRUE(harness.Contains(absl::StrCat("key", std::max(0, i - 99))));
    ASSERT_FALSE(harness.Contains(absl::StrCat("key", i - 100)));
  }
  ASSERT_EQ(harness.Statistics().live_buckets, 1);
  const Reading reading = harness.ReadEvents();
  ASSERT_EQ(reading.events.size(), 200u);
  for (size_t i = 0; i < reading.events.size(); ++i) {
    EXPECT_EQ(reading.events[i].key, absl::StrCat("key", i));
    EXPECT_EQ(reading.events[i].value, "v");
    EXPECT_EQ(reading.events[i].cause, Cause::kEvicted);
    EXPECT_EQ(reading.events[i].put_us, kStartUs + static_cast<int64_t>(i) + 1);
  }
  EXPECT_EQ(harness.Statistics().evicted, 200u);
}

TEST(LimitsTest, InOneFullBucketWhatWasRenewedOrRemovedIsPassed) {
  NamespaceOptions options = OneBucket(6, 0);
  options.num_shards = 1;
  MapHarness harness(options);
  for (int i = 0; i < 6; ++i) {
    harness.Pass(1);
    harness.Put(absl::StrCat(i), "v");
  }
  harness.Apply(Operation::Remove("1"));
  // Of another length, so that it is written anew.
  harness.Put("0", "longer");
  harness.Put("more", "v");
  EXPECT_EQ(harness.Entries(), 6);
  harness.Put("x", "v");
  harness.Put("y", "v");
  EXPECT_TRUE(harness.Contains("0"));
  const Reading reading = harness.ReadEvents();
  EXPECT_THAT(reading.Texts(), ElementsAre("2=v", "3=v"));
}

TEST(LimitsTest, InOneFullBucketLargeEntriesAreEvictedOneByOne) {
  MapHarness harness(OneBucket(0, 16 << 20));
  for (int i = 0; i < 40; ++i) {
    harness.Pass(1);
    ASSERT_TRUE(harness
                    .Put(absl::StrCat("large", i),
                         std::string((1 << 20) - 10, static_cast<char>(i)))
                    .status.ok());
    harness.Put(absl::StrCat("small", i), "v");
    ASSERT_GE(harness.Bytes(), std::min(i + 1, 15) * ((1 << 20) - 10));
  }
  const Reading reading = harness.ReadEvents();
  ASSERT_GE(reading.events.size(), 48u);
  for (const DeliveredEvent& told : reading.events) {
    if (told.key[0] == 's') continue;
    const int i = std::stoi(told.key.substr(5));
    EXPECT_EQ(told.value.size(), static_cast<size_t>((1 << 20) - 10));
    EXPECT_EQ(told.value.front(), static_cast<char>(i));
    EXPECT_EQ(told.value.back(), static_cast<char>(i));
  }
  harness.Pass(7200 * kSecond);
  EXPECT_EQ(reading.events.size() + harness.ReadEvents().events.size(), 80u);
}

TEST(LimitsTest, EvictedEntriesDieAfterTheWatermarkThatWasTold) {
  MapHarness harness(OneBucket(2, 0));
  harness.Put("a", "1");
  harness.Put("b", "1");
  for (int i = 0; i < 5; ++i) {
    const int64_t promised_us = harness.ReadEvents().watermark_us;
    ASSERT_TRUE(harness.Put(absl::StrCat("more", i), "1").status.ok());
    const Reading reading = harness.ReadEvents();
    ASSERT_EQ(reading.events.size(), 1u);
    EXPECT_GT(reading.events[0].death_us, promised_us);
    EXPECT_EQ(reading.events[0].cause, Cause::kEvicted);
  }
}

TEST(LimitsTest, AnEvictedKeyThatIsPutAgainBeforeItsSweepTakesNothingWithIt) {
  MapHarness harness(OneBucket(1, 0));
  harness.Put("a", "first");
  harness.Put("b", "second");
  harness.Put("a", "third");
  EXPECT_EQ(harness.Get("a"), "third");
  EXPECT_FALSE(harness.Contains("b"));
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("a=first", "b=second"));
  harness.Pass(7200 * kSecond);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("a=third"));
}

TEST(LimitsTest, ALoweredLimitEvictsAnyNumberOfOneBucket) {
  MapHarness harness(OneBucket(5'000, 0));
  for (int i = 0; i < 5'000; ++i) {
    harness.Pass(1);
    harness.Put(absl::StrCat("key", i), "v");
  }
  harness.Update(OneBucket(10, 0));
  EXPECT_TRUE(harness.Put("x", "v").status.ok());
  EXPECT_EQ(harness.Entries(), 10);
  EXPECT_TRUE(harness.Contains("key4999"));
  EXPECT_TRUE(harness.Contains("key4991"));
  EXPECT_EQ(harness.ReadEvents().events.size(), 4'991u);
}

// Nobody sweeps: who evicts does so in time.
TEST(LimitsTest, EvictedEntriesDoNotPileUp) {
  constexpr int kPuts = 20'000;
  MapHarness harness(OneBucket(10, 0));
  for (int i = 0; i < kPuts; ++i) {
    ASSERT_TRUE(harness.Put(absl::StrCat("key", i), "v").status.ok());
  }
  const NamespaceStatistics statistics = harness.Statistics();
  EXPECT_EQ(statistics.evicted, kPuts - 10u);
  EXPECT_GE(statistics.lateness.total(), kPuts - 10 - Sweeper::kMaxWaiting - 1);
  EXPECT_EQ(harness.ReadEvents().events.size(), kPuts - 10u);
}

TEST(LimitsTest, EvictionMayTakeTheOldValueOfTheVeryKey) {
  MapHarness harness(Limited(0, 20, LimitPolicy::kEvictOldest));
  const uint64_t old_version = harness.Put("a", "old").version;
  harness.Pass(kSecond);
  harness.Put("b", std::string(14, 'v'));
  const Result put = harness.Put("a", "longer");
  EXPECT_TRUE(put.status.ok()) << put.status;
  EXPECT_EQ(harness.Get("a"), "longer");
  EXPECT_FALSE(put.found);
  EXPECT_FALSE(put.has_entry);
  const Reading reading = harness.ReadEvents();
  ASSERT_FALSE(reading.events.empty());
  EXPECT_EQ(reading.events[0].value, "old");
  EXPECT_EQ(reading.events[0].version, old_version);
  EXPECT_EQ(reading.events[0].cause, Cause::kEvicted);
}

TEST(LimitsTest, AnIfPresentPutMayLoseItsKeyToItsOwnEviction) {
  MapHarness harness(Limited(0, 20, LimitPolicy::kEvictOldest));
  harness.Put("a", "old");
  harness.Pass(kSecond);
  harness.Put("b", std::string(14, 'v'));
  Operation op = Operation::Put("a", "longer");
  op.condition = Condition::kIfPresent;
  EXPECT_EQ(ReasonOf(harness.Apply(op).status), Reason::kKeyNotFound);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("a=old"));
}

TEST(LimitsTest, TheServersLimitHoldsForAllMapsTogether) {
  Usage server(3, 0);
  MapHarness one(Tens(), kStartUs, &server);
  MapHarness two(Tens(), kStartUs, &server);
  one.Put("a", "v");
  one.Put("b", "v");
  two.Put("a", "v");
  ExpectFull(two.Put("b", "v"), Reason::kServerMaxEntries);
  EXPECT_EQ(two.Entries(), 1);
  one.Pass(10 * kSecond);
  EXPECT_EQ(one.Entries(), 0);
  EXPECT_TRUE(two.Put("b", "v").status.ok());
}

TEST(LimitsTest, ADeletedMapGivesItsShareOfTheServerBack) {
  Usage server(10, 0);
  {
    MapHarness map(Tens(), kStartUs, &server);
    for (int i = 0; i < 10; ++i) map.Put(absl::StrCat(i), "v");
    EXPECT_EQ(server.entries(), 10);
  }
  EXPECT_EQ(server.entries(), 0);
  EXPECT_EQ(server.bytes(), 0);
}

TEST(RotateTest, KillsTheBucketThatWouldDieNextInAllShards) {
  MapHarness harness(Tens());
  for (int i = 0; i < 100; ++i) harness.Put(absl::StrCat("old", i), "v");
  harness.Pass(kSecond);
  harness.Put("young", "v");
  EXPECT_EQ(harness.Rotate(), 100);
  EXPECT_EQ(harness.Entries(), 1);
  EXPECT_EQ(harness.Statistics().rotated, 100u) << "before any sweep";
  EXPECT_TRUE(harness.Contains("young"));
  const Reading reading = harness.ReadEvents();
  EXPECT_THAT(reading.batch_sizes, ElementsAre(100));
  EXPECT_EQ(reading.events[0].cause, Cause::kRotated);
  EXPECT_EQ(reading.events[0].death_us, harness.now_us());
  EXPECT_EQ(harness.Rotate(), 1);
  EXPECT_EQ(harness.Rotate(), 0);
  harness.Sweep();
  EXPECT_EQ(harness.Statistics().rotated, 101u);
}

TEST(RotateTest, AtAFrozenClockTheDeathIsAfterTheWatermark) {
  MapHarness harness(Tens());
  for (int i = 0; i < 5; ++i) {
    harness.Put("key", absl::StrCat(i));
    const int64_t promised_us = harness.ReadEvents().watermark_us;
    EXPECT_EQ(promised_us, harness.now_us());
    EXPECT_EQ(harness.Rotate(), 1);
    const Reading reading = harness.ReadEvents();
    ASSERT_EQ(reading.events.size(), 1u);
    EXPECT_GT(reading.events[0].death_us, promised_us);
    EXPECT_LE(reading.events[0].death_us, harness.now_us() + 1);
    EXPECT_GE(reading.events[0].published_us, reading.events[0].death_us);
  }
}

TEST(RotateTest, AWatchFromNowSeesWhatIsKilledAfterIt) {
  MapHarness harness(Tens());
  harness.Put("key", "v");
  const auto cursor = harness.Subscribe(ExpiryLog::Start::kNow);
  EXPECT_EQ(harness.Rotate(), 1);
  harness.Sweep();
  EXPECT_THAT(ReadAll(cursor.get()).Texts(), ElementsAre("key=v"));
}

TEST(UpdateTest, KeepsThePromiseForEntriesThatAreIn) {
  MapHarness harness(Tens());
  harness.Pass(1);
  harness.Put("old", "v");
  harness.Update(WithBuckets(2 * kSecond, 3));
  EXPECT_EQ(harness.map().options().ttl_us, 2 * kSecond);
  harness.Put("new", "v");
  harness.GoTo(kStartUs + 3 * kSecond);
  EXPECT_FALSE(harness.Contains("new"));
  EXPECT_TRUE(harness.Contains("old"));
  harness.GoTo(kStartUs + 11 * kSecond - 1);
  EXPECT_TRUE(harness.Contains("old"));
  harness.Pass(1);
  EXPECT_FALSE(harness.Contains("old"));
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("new=v", "old=v"));
}

TEST(UpdateTest, BucketsOfDifferentWidthsDieInOrderOfDeath) {
  MapHarness harness(WithBuckets(12 * kSecond, 5));
  std::vector<int64_t> widths = {3, 4, 2, 6, 1};
  for (size_t i = 0; i < 50; ++i) {
    const int64_t width_us = widths[i % widths.size()] * kSecond;
    harness.Update(WithBuckets(12 * kSecond, 12 * kSecond / width_us + 1));
    harness.Put(absl::StrCat("key", i), absl::StrCat(width_us));
    harness.Pass(100'001);
  }
  harness.Pass(100 * kSecond);
  const Reading reading = harness.ReadEvents();
  ASSERT_EQ(reading.events.size(), 50u);
  int64_t latest_us = 0;
  for (const DeliveredEvent& told : reading.events) {
    EXPECT_GE(told.death_us, latest_us);
    latest_us = told.death_us;
    EXPECT_EQ(told.death_us,
              DeathTimeUs(told.deadline_us, std::stoll(told.value)));
  }
}

TEST(UpdateTest, RetentionTakesEffectAtOnce) {
  MapHarness harness(Tens());
  harness.Put("key", "v");
  harness.Pass(10 * kSecond);
  harness.ReadEvents();
  EXPECT_EQ(harness.Statistics().events_retained, 1u);
  NamespaceOptions options = Tens();
  options.retention_us = 0;
  harness.Pass(1);
  harness.Update(options);
  EXPECT_EQ(harness.Statistics().events_retained, 0u);
}

}  // namespace
}  // namespace timecache::server

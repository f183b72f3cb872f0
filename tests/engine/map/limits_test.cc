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
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

NamespaceOptions Tens() { return WithBuckets(10 * kSecond, 11); }

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

TEST(LimitsTest, AFullMapRefusesFreshKeysAndTakesOverwrites) {
  MapHarness harness(Limited(2, 0, LimitPolicy::kReject));
  harness.Put("a", "1");
  harness.Put("b", "1");
  ExpectFull(harness.Put("c", "1"), Reason::kMaxEntries);
  EXPECT_TRUE(harness.Put("a", "a longer one").status.ok());
  EXPECT_EQ(harness.Entries(), 2);
  EXPECT_FALSE(harness.Contains("c"));
  harness.Apply(Operation::Remove("a"));
  EXPECT_TRUE(harness.Put("c", "1").status.ok());
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

TEST(LimitsTest, TouchAndGetNeverMeetALimit) {
  MapHarness harness(Limited(1, 4, LimitPolicy::kReject));
  harness.Put("key", "v");
  harness.Pass(5 * kSecond);
  EXPECT_TRUE(harness.Apply(Operation::Touch("key")).status.ok());
  Operation get = Operation::Get("key");
  get.touch = true;
  EXPECT_TRUE(harness.Apply(get).status.ok());
}

TEST(LimitsTest, DeathReleasesWithoutAnySweep) {
  for (const LimitPolicy policy :
       {LimitPolicy::kReject, LimitPolicy::kEvictOldest}) {
    MapHarness harness(Limited(10, 0, policy));
    for (int round = 0; round < 5; ++round) {
      for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(harness.Put(absl::StrCat("key", i), "v").status.ok());
      }
      harness.Pass(10 * kSecond);
    }
    const Reading reading = harness.ReadEvents();
    EXPECT_EQ(reading.events.size(), 50u);
    for (const DeliveredEvent& told : reading.events) {
      EXPECT_EQ(told.cause, Cause::kExpired);
    }
  }
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

TEST(LimitsTest, EvictOldestKillsTheWholeBucketThatWouldDieNext) {
  MapHarness harness(Limited(4, 0, LimitPolicy::kEvictOldest));
  harness.Put("a1", "v");
  harness.Put("a2", "v");
  harness.Pass(kSecond);
  harness.Put("b1", "v");
  harness.PutFor("short", "v", 2 * kSecond);
  EXPECT_TRUE(harness.Put("c1", "v").status.ok());
  EXPECT_FALSE(harness.Contains("short")) << "it would have died first";
  EXPECT_TRUE(harness.Put("c2", "v").status.ok());
  EXPECT_EQ(harness.Entries(), 3);
  const Reading reading = harness.ReadEvents();
  EXPECT_THAT(
      reading.Texts(),
      testing::AllOf(testing::SizeIs(3), testing::Contains("short=v"),
                     testing::Contains("a1=v"), testing::Contains("a2=v")));
  EXPECT_EQ(reading.Texts()[0], "short=v");
  for (const DeliveredEvent& told : reading.events) {
    EXPECT_EQ(told.cause, Cause::kEvicted);
    EXPECT_EQ(told.death_us, harness.now_us());
  }
  EXPECT_EQ(harness.Statistics().evicted, 3u);
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

TEST(LimitsTest, InOneFullBucketAsManyAreEvictedAsTheirBytesMustBe) {
  MapHarness harness(OneBucket(0, 1'000));
  for (int i = 0; i < 10; ++i) {
    harness.Pass(1);
    harness.Put(absl::StrCat(i), std::string(99, 'v'));
  }
  ASSERT_EQ(harness.Bytes(), 1'000);
  EXPECT_TRUE(harness.Put("x", std::string(249, 'v')).status.ok());
  EXPECT_EQ(harness.Entries(), 8);
  EXPECT_EQ(harness.Bytes(), 950);
  EXPECT_TRUE(harness.Put("9", std::string(149, 'v')).status.ok());
  EXPECT_EQ(harness.Bytes(), 1'000);
  EXPECT_TRUE(harness.Put("9", std::string(150, 'v')).status.ok());
  EXPECT_EQ(harness.Bytes(), 901);
  const Reading reading = harness.ReadEvents();
  std::vector<std::string> keys;
  for (const DeliveredEvent& told : reading.events) keys.push_back(told.key);
  // In what order those of one put are told is the engine's to choose.
  EXPECT_THAT(keys, UnorderedElementsAre("0", "1", "2", "3"));
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

TEST(LimitsTest, EvictOldestGoesOnUntilThePutFits) {
  MapHarness harness(Limited(0, 100, LimitPolicy::kEvictOldest));
  for (int i = 0; i < 5; ++i) {
    harness.Put(absl::StrCat(i), std::string(19, 'v'));
    harness.Pass(kSecond);
  }
  EXPECT_EQ(harness.Entries(), 5);
  EXPECT_TRUE(harness.Put("x", std::string(50, 'v')).status.ok());
  EXPECT_EQ(harness.Entries(), 3);
  EXPECT_EQ(harness.Bytes(), 20 + 20 + 51);
  EXPECT_EQ(harness.ReadEvents().events.size(), 3u);
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

TEST(LimitsTest, APutLargerThanTheMapIsRefusedAndKillsNothing) {
  MapHarness harness(Limited(0, 100, LimitPolicy::kEvictOldest));
  harness.Put("a", "v");
  ExpectFull(harness.Put("b", std::string(100, 'v')), Reason::kMaxBytes);
  EXPECT_EQ(harness.Get("a"), "v") << "after an error nothing was changed";
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
}

TEST(LimitsTest, ALoweredLimitRefusesOrEvictsWithTheNextPut) {
  MapHarness harness(Tens());
  for (int i = 0; i < 10; ++i) {
    harness.Put(absl::StrCat(i), "v");
    if (i % 2 == 1) harness.Pass(kSecond);
  }
  harness.Update(Limited(4, 0, LimitPolicy::kReject));
  EXPECT_EQ(harness.Entries(), 10);
  ExpectFull(harness.Put("x", "v"), Reason::kMaxEntries);
  EXPECT_TRUE(harness.Put("9", "v").status.ok()) << "does not grow";
  harness.Update(Limited(4, 0, LimitPolicy::kEvictOldest));
  EXPECT_TRUE(harness.Put("x", "v").status.ok());
  EXPECT_LE(harness.Entries(), 4);
  EXPECT_TRUE(harness.Contains("x"));
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

TEST(RotateTest, WithNothingLiveNothingHappens) {
  MapHarness harness(Tens());
  EXPECT_EQ(harness.Rotate(), 0);
  harness.Put("key", "v");
  harness.Pass(10 * kSecond);
  EXPECT_EQ(harness.Rotate(), 0) << "it died of age";
  const Reading reading = harness.ReadEvents();
  ASSERT_EQ(reading.events.size(), 1u);
  EXPECT_EQ(reading.events[0].cause, Cause::kExpired);
}

TEST(RotateTest, ABucketThatWasEmptiedDoesNotCount) {
  MapHarness harness(Tens());
  harness.Put("old", "v");
  harness.Pass(kSecond);
  harness.Put("young", "v");
  harness.Apply(Operation::Remove("old"));
  EXPECT_EQ(harness.Rotate(), 1);
  EXPECT_FALSE(harness.Contains("young"));
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

TEST(RotateTest, APutIntoTheKilledBucketsTimeMakesItAnew) {
  MapHarness harness(Tens());
  harness.Pass(1);
  harness.Put("key", "first");
  EXPECT_EQ(harness.Rotate(), 1);
  harness.Put("key", "second");
  EXPECT_EQ(harness.Get("key"), "second");
  EXPECT_EQ(harness.Entries(), 1);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("key=first"));
  harness.GoTo(kStartUs + 11 * kSecond);
  EXPECT_FALSE(harness.Contains("key"));
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("key=second"));
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

TEST(UpdateTest, ALongerTtlHoldsFromTheNextPutOrTouchOn) {
  MapHarness harness(Tens());
  harness.Put("left", "v");
  harness.Put("touched", "v");
  harness.Update(WithBuckets(100 * kSecond, 11));
  harness.Apply(Operation::Touch("touched"));
  harness.Pass(10 * kSecond);
  EXPECT_FALSE(harness.Contains("left"));
  EXPECT_TRUE(harness.Contains("touched"));
  EXPECT_EQ(harness.Apply(Operation::Get("touched")).entry.deadline_us,
            kStartUs + 100 * kSecond);
  EXPECT_EQ(harness.Statistics().bucket_width_us, 10 * kSecond);
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

TEST(UpdateTest, SlidingTakesEffectAtOnce) {
  MapHarness harness(Tens());
  harness.Put("key", "v");
  NamespaceOptions options = Tens();
  options.sliding = true;
  harness.Update(options);
  harness.Pass(5 * kSecond);
  EXPECT_EQ(harness.Get("key"), "v");
  harness.Pass(9 * kSecond);
  EXPECT_TRUE(harness.Contains("key"));
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

// Limits, eviction, rotation by hand and live changes of the options.

#include <string>

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

TEST(RotateTest, AtAFrozenClockTheDeathIsAfterTheWatermark) {
  MapHarness harness(Tens());
  for (int i = 0; i < 5; ++i) {
    harness.Put("key", absl::StrCat(i));
    const int64_t promised_us = harness.ReadEvents().watermark_us;
    EXPECT_EQ(promised_us, harness.now_us());
    EXPECT_EQ(harness.Rotate(), 1);
    EXPECT_EQ(harness.Statistics().rotated, i + 1u) << "before any sweep";
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

}  // namespace
}  // namespace timecache::server

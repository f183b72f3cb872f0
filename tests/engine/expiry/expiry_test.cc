// When entries die: one test a boundary. How it is told is in sweep_test.cc.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Start = ExpiryLog::Start;

TEST(ExpiryTest, OneTickBeforeDeathAnEntryIsThere) {
  MapHarness harness(Tens());
  harness.Pass(1);
  harness.Put("key", "value");
  harness.GoTo(kStartUs + 11 * kSecond - 1);
  EXPECT_EQ(harness.Get("key"), "value");
  EXPECT_TRUE(harness.Contains("key"));
  EXPECT_EQ(harness.Entries(), 1);
  EXPECT_EQ(harness.ScanAll().size(), 1u);
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
}

TEST(ExpiryTest, ExactlyAtDeathItIsGoneForEveryReaderUnswept) {
  MapHarness harness(Tens());
  harness.Pass(1);
  harness.Put("key", "value");
  harness.GoTo(kStartUs + 11 * kSecond);
  EXPECT_EQ(harness.Get("key"), "(none)");
  EXPECT_FALSE(harness.Contains("key"));
  EXPECT_FALSE(harness.Apply(Operation::Touch("key")).found);
  EXPECT_FALSE(harness.Apply(Operation::Remove("key")).found);
  EXPECT_EQ(harness.ScanAll().size(), 0u);
  EXPECT_EQ(harness.Entries(), 0);
  EXPECT_EQ(harness.Bytes(), 0);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("key=value"));
}

TEST(ExpiryTest, ADeadlineOnABucketsEdgeDiesAtTheDeadline) {
  MapHarness harness(Tens());
  harness.Put("key", "value");
  harness.Pass(10 * kSecond - 1);
  EXPECT_TRUE(harness.Contains("key"));
  harness.Pass(1);
  EXPECT_FALSE(harness.Contains("key"));
}

TEST(ExpiryTest, TwoBucketsLiveUpToTwiceTheTtl) {
  MapHarness harness(WithBuckets(10 * kSecond, 2));
  harness.Pass(1);
  harness.Put("key", "value");
  harness.GoTo(kStartUs + 20 * kSecond - 1);
  EXPECT_TRUE(harness.Contains("key"));
  harness.Pass(1);
  EXPECT_FALSE(harness.Contains("key"));
}

TEST(ExpiryTest, ATtlThatTheBucketsDoNotDivideKeepsTheBound) {
  const NamespaceOptions options = WithBuckets(10 * kSecond + 1, 8);
  const int64_t width_us = BucketWidthUs(options);
  ASSERT_NE(width_us * 7, options.ttl_us);
  MapHarness harness(options);
  for (int i = 0; i < 500; ++i) {
    harness.Pass(12'347);
    const std::string key = absl::StrCat("key", i);
    harness.Put(key, "v");
    const int64_t deadline_us = harness.now_us() + options.ttl_us;
    const int64_t death_us = DeathTimeUs(deadline_us, width_us);
    EXPECT_GE(death_us, deadline_us);
    EXPECT_LT(death_us, deadline_us + width_us);
  }
  harness.Pass(kHour);
  const Reading reading = harness.ReadEvents();
  ASSERT_EQ(reading.events.size(), 500u);
  for (const DeliveredEvent& told : reading.events) {
    EXPECT_EQ(told.death_us, DeathTimeUs(told.deadline_us, width_us));
  }
}

TEST(ExpiryTest, WhileTheClockStandsStillNothingDies) {
  MapHarness harness(Tens());
  for (int i = 0; i < 1'000; ++i) {
    harness.Put(absl::StrCat("key", i), "v");
    harness.Sweep();
  }
  EXPECT_EQ(harness.Entries(), 1'000);
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
}

TEST(ExpiryTest, AClockThatJumpsAnHourKillsEverythingInOrder) {
  MapHarness harness(Tens());
  for (int i = 0; i < 9; ++i) {
    harness.Put(absl::StrCat("key", i), "v");
    harness.Pass(kSecond);
  }
  harness.Pass(kHour);
  EXPECT_EQ(harness.Entries(), 0);
  const Reading reading = harness.ReadEvents();
  ASSERT_EQ(reading.events.size(), 9u);
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(reading.events[i].key, absl::StrCat("key", i));
    EXPECT_EQ(reading.events[i].death_us, kStartUs + (10 + i) * kSecond);
  }
}

TEST(ExpiryTest, ATimeBehindOneThatWasSeenCountsAsThatOne) {
  MapHarness harness(Tens());
  harness.Put("key", "value");
  harness.Pass(10 * kSecond);
  EXPECT_FALSE(harness.Contains("key"));
  harness.GoTo(kStartUs);
  EXPECT_FALSE(harness.Contains("key")) << "what died has come back";
  EXPECT_TRUE(harness.Put("key", "again").status.ok());
  const Result got = harness.Apply(Operation::Get("key"));
  EXPECT_EQ(got.entry.put_us, kStartUs + 10 * kSecond);
}

TEST(ExpiryTest, ManyGenerationsAtOnceDieInOrder) {
  constexpr int kEntries = 5'000;
  MapHarness harness(Tens());
  for (int i = 0; i < kEntries; ++i) {
    const int64_t ttl_us = (1 + i * 7'919 % kEntries) * kSecond;
    harness.PutFor(absl::StrCat("key", i), absl::StrCat(ttl_us), ttl_us);
  }
  EXPECT_EQ(harness.Statistics().live_buckets, kEntries);
  harness.Pass(kEntries * kSecond / 2);
  const Reading first = harness.ReadEvents();
  EXPECT_EQ(first.events.size(), static_cast<size_t>(kEntries / 2));
  EXPECT_EQ(harness.Entries(), kEntries / 2);
  harness.Pass(kEntries * kSecond);
  const Reading second = harness.ReadEvents();
  EXPECT_EQ(second.events.size(), static_cast<size_t>(kEntries / 2));
  std::vector<int64_t> deaths;
  for (const Reading* reading : {&first, &second}) {
    for (const DeliveredEvent& told : reading->events) {
      EXPECT_EQ(absl::StrCat(told.death_us - kStartUs), told.value);
      deaths.push_back(told.death_us);
    }
  }
  EXPECT_TRUE(std::is_sorted(deaths.begin(), deaths.end()));
}

TEST(ExpiryTest, PutOnExpiredUnsweptKeyKeepsTheOldEvent) {
  MapHarness harness(Tens());
  const uint64_t old_version = harness.Put("key", "old").version;
  harness.Pass(10 * kSecond);
  const Result put = harness.Put("key", "new");
  EXPECT_FALSE(put.found);
  EXPECT_GT(put.version, old_version);
  EXPECT_EQ(harness.Get("key"), "new");
  const Reading first = harness.ReadEvents();
  EXPECT_THAT(first.Texts(), ElementsAre("key=old"));
  EXPECT_EQ(first.events[0].version, old_version);
  EXPECT_EQ(harness.Get("key"), "new");
  harness.Pass(10 * kSecond);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("key=new"));
}

}  // namespace
}  // namespace timecache::server

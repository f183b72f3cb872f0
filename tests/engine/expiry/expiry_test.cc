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

TEST(ExpiryTest, AnEventSaysWhatItWasAndWhenItDied) {
  MapHarness harness(Tens());
  harness.Pass(300);
  const Result put = harness.Put("key", "value");
  harness.Pass(kHour);
  const Reading reading = harness.ReadEvents();
  ASSERT_EQ(reading.events.size(), 1u);
  const DeliveredEvent& told = reading.events[0];
  EXPECT_EQ(told.key, "key");
  EXPECT_EQ(told.value, "value");
  EXPECT_EQ(told.version, put.version);
  EXPECT_EQ(told.put_us, kStartUs + 300);
  EXPECT_EQ(told.deadline_us, kStartUs + 300 + 10 * kSecond);
  EXPECT_EQ(told.death_us, kStartUs + 11 * kSecond);
  EXPECT_EQ(told.cause, Cause::kExpired);
  EXPECT_EQ(reading.watermark_us, harness.now_us());
  EXPECT_EQ(reading.lost, 0u);
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

TEST(ExpiryTest, RemoveOnExpiredUnsweptKeyKeepsTheOldEvent) {
  MapHarness harness(Tens());
  harness.Put("key", "old");
  harness.Pass(10 * kSecond);
  harness.Put("key", "new");
  EXPECT_TRUE(harness.Apply(Operation::Remove("key")).found);
  EXPECT_FALSE(harness.Apply(Operation::Remove("key")).found);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("key=old"));
  EXPECT_EQ(harness.Entries(), 0);
}

TEST(ExpiryTest, RepeatedRePutsOfADyingKeyAreAllTold) {
  constexpr int kRounds = 100;
  MapHarness harness(Tens());
  std::vector<std::string> expected;
  for (int i = 0; i < kRounds; ++i) {
    // Nothing sweeps; in every other round somebody says that the bucket is
    // dead.
    harness.Put("key", absl::StrCat(i));
    expected.push_back(absl::StrCat("key=", i));
    harness.Pass(11 * kSecond);
    if (i % 2 == 0) harness.map().Advance(harness.now_us());
  }
  EXPECT_EQ(harness.ReadEvents().Texts(), expected);
}

TEST(ExpiryTest, IfAbsentHoldsOnAnExpiredUnsweptKey) {
  MapHarness harness(Tens());
  harness.Put("key", "old");
  harness.Pass(10 * kSecond);
  Operation op = Operation::Put("key", "new");
  op.condition = Condition::kIfPresent;
  EXPECT_EQ(harness.Apply(op).status.code(),
            absl::StatusCode::kFailedPrecondition);
  op.condition = Condition::kIfAbsent;
  EXPECT_TRUE(harness.Apply(op).status.ok());
}

TEST(ExpiryTest, AnOverwriteMovesTheKeyOutOfItsOlderBucket) {
  MapHarness harness(Tens());
  harness.Put("key", "old");
  harness.Pass(5 * kSecond);
  harness.Put("key", "new");
  harness.Pass(5 * kSecond);
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
  EXPECT_EQ(harness.Get("key"), "new");
  harness.Pass(5 * kSecond);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("key=new"));
}

TEST(ExpiryTest, AnOverwriteWithAShorterTtlMovesItIntoAnEarlierBucket) {
  MapHarness harness(Tens());
  harness.Put("key", "old");
  harness.PutFor("key", "new", kSecond);
  harness.Pass(kSecond);
  EXPECT_FALSE(harness.Contains("key"));
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("key=new"));
  harness.Pass(kHour);
  EXPECT_THAT(harness.ReadEvents().events, IsEmpty());
}

TEST(ExpiryTest, AnOwnTtlMayBeLongerThanTheNamespaces) {
  MapHarness harness(Tens());
  harness.Put("short", "v");
  harness.PutFor("long", "v", 100 * kSecond);
  harness.Pass(10 * kSecond);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("short=v"));
  harness.Pass(90 * kSecond - 1);
  EXPECT_TRUE(harness.Contains("long"));
  harness.Pass(1);
  EXPECT_FALSE(harness.Contains("long"));
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("long=v"));
}

TEST(ExpiryTest, ATouchGivesAFreshTtl) {
  MapHarness harness(Tens());
  harness.Put("touched", "v");
  harness.Put("left", "v");
  harness.Pass(5 * kSecond);
  EXPECT_TRUE(harness.Apply(Operation::Touch("touched")).found);
  harness.Pass(5 * kSecond);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("left=v"));
  const Result got = harness.Apply(Operation::Get("touched"));
  ASSERT_TRUE(got.has_entry);
  EXPECT_EQ(got.entry.put_us, kStartUs + 5 * kSecond);
  EXPECT_EQ(got.entry.deadline_us, kStartUs + 15 * kSecond);
  harness.Pass(5 * kSecond);
  EXPECT_THAT(harness.ReadEvents().Texts(), ElementsAre("touched=v"));
}

TEST(ExpiryTest, ATouchWithinABucketMovesTheDeadlineToo) {
  MapHarness harness(Tens());
  harness.Pass(1);
  harness.Put("key", "v");
  harness.Pass(100);
  const Result touched = harness.Apply(Operation::Touch("key"));
  harness.Pass(kHour);
  const Reading reading = harness.ReadEvents();
  ASSERT_EQ(reading.events.size(), 1u);
  EXPECT_EQ(reading.events[0].version, touched.version);
  EXPECT_EQ(reading.events[0].put_us, kStartUs + 101);
}

TEST(ExpiryTest, ATouchRenewsWithTheEntrysOwnTtl) {
  MapHarness harness(Tens());
  harness.PutFor("key", "v", 3 * kSecond);
  harness.Pass(2 * kSecond);
  EXPECT_TRUE(harness.Apply(Operation::Touch("key")).found);
  EXPECT_EQ(harness.Apply(Operation::Get("key")).entry.deadline_us,
            harness.now_us() + 3 * kSecond);
  harness.Pass(3 * kSecond - 1);
  EXPECT_TRUE(harness.Contains("key"));
  harness.Apply(Operation::Touch("key").WithTtl(7 * kSecond));
  harness.Pass(1);
  harness.Apply(Operation::Touch("key"));
  EXPECT_EQ(harness.Apply(Operation::Get("key")).entry.deadline_us,
            harness.now_us() + 7 * kSecond);
}

TEST(ExpiryTest, APutWithoutItsOwnTtlTakesTheNamespacesAgain) {
  MapHarness harness(Tens());
  harness.PutFor("key", "v", 3 * kSecond);
  harness.Put("key", "v");
  EXPECT_EQ(harness.Apply(Operation::Get("key")).entry.deadline_us,
            kStartUs + 10 * kSecond);
  harness.Apply(Operation::Touch("key"));
  EXPECT_EQ(harness.Apply(Operation::Get("key")).entry.deadline_us,
            kStartUs + 10 * kSecond);
}

TEST(ExpiryTest, GetRenewsWhenAskedTo) {
  MapHarness harness(Tens());
  harness.Put("key", "v");
  harness.Pass(5 * kSecond);
  Operation op = Operation::Get("key");
  op.touch = true;
  const Result got = harness.Apply(op);
  ASSERT_TRUE(got.has_entry);
  EXPECT_EQ(got.entry.put_us, harness.now_us());
  EXPECT_EQ(got.entry.deadline_us, harness.now_us() + 10 * kSecond);
  harness.Pass(6 * kSecond);
  EXPECT_TRUE(harness.Contains("key"));
}

TEST(ExpiryTest, ASlidingMapRenewsWithEveryGetAndWithNoContains) {
  NamespaceOptions options = Tens();
  options.sliding = true;
  MapHarness harness(options);
  harness.Put("read", "v");
  harness.Put("asked", "v");
  for (int i = 0; i < 9; ++i) {
    harness.Pass(kSecond);
    EXPECT_EQ(harness.Get("read"), "v");
    EXPECT_TRUE(harness.Contains("asked"));
  }
  harness.Pass(kSecond);
  EXPECT_EQ(harness.Get("read"), "v");
  EXPECT_FALSE(harness.Contains("asked"));
}

}  // namespace
}  // namespace timecache::server

// What is going to die: when it is told, what is told again and what not.

#include "server/engine/upcoming.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/lead_reader.h"
#include "tests/support/map_harness.h"

namespace timecache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kLeadUs = 3 * kSecond;
// Of a value that gets a segment of its own.
constexpr size_t kLargeBytes = 300 << 10;

// A TTL of 10 s in buckets of 1 s.
MapOptions Tens() { return WithBuckets(10 * kSecond, 11); }
MapOptions OneShard() {
  MapOptions options = Tens();
  options.num_shards = 1;
  return options;
}

Result Touch(MapHarness* harness, const std::string& key) {
  return harness->Apply(Operation::Touch(key));
}

TEST(UpcomingTest, AnEntryIsToldExactlyWhenItsBucketComesWithinTheLeadTime) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.Pass(kSecond / 2);
  const uint64_t version = harness.Put("a", "one").version;
  EXPECT_THAT(reader.Look(), IsEmpty());
  const int64_t death_us = kStartUs + 11 * kSecond;
  harness.GoTo(death_us - kLeadUs - 1);
  EXPECT_THAT(reader.Look(), IsEmpty());
  EXPECT_EQ(reader.cursor().NextDueUs(), death_us - kLeadUs);
  harness.Pass(1);
  const std::vector<Told> told = reader.Drain();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].key, "a");
  EXPECT_EQ(told[0].value, "one");
  EXPECT_EQ(told[0].version, version);
  EXPECT_EQ(told[0].put_us, kStartUs + kSecond / 2);
  EXPECT_EQ(told[0].deadline_us, kStartUs + kSecond / 2 + 10 * kSecond);
  EXPECT_EQ(told[0].death_us, death_us);
  EXPECT_EQ(told[0].cause, Cause::kExpiring);
}

TEST(UpcomingTest, ItIsToldOnceForEachDeath) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.Put("a", "one");
  harness.Pass(7 * kSecond);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("a"));
  EXPECT_THAT(reader.Look(), IsEmpty());
  harness.Pass(3 * kSecond - 1);
  EXPECT_THAT(reader.Look(), IsEmpty());
  harness.Pass(1);
  EXPECT_THAT(reader.Look(), IsEmpty());
}

TEST(UpcomingTest, ATouchedEntryIsToldAgainWhenItsTimeComes) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.Put("a", "one");
  harness.Pass(7 * kSecond);
  EXPECT_THAT(reader.Look(), SizeIs(1));
  const uint64_t version = Touch(&harness, "a").version;
  const int64_t touched_us = harness.now_us();
  harness.Pass(7 * kSecond - 1);
  EXPECT_THAT(reader.Look(), IsEmpty());
  harness.Pass(1);
  const std::vector<Told> told = reader.Drain();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].version, version);
  EXPECT_EQ(told[0].put_us, touched_us);
}

// Their version says nothing of when they came into the bucket, whose other
// entries have been told already.
TEST(UpcomingTest, WhatIsTouchedIntoABucketThatWasReadIsTold) {
  MapHarness harness(OneShard());
  LeadReader reader(&harness, kLeadUs);
  harness.PutFor("a", "v", 5 * kSecond);
  harness.PutFor("b", "v", 5 * kSecond);
  const auto touch_for = [&harness](const std::string& key, int64_t ttl_us) {
    return harness.Apply(Operation::Touch(key).WithTtl(ttl_us));
  };
  harness.PutFor("c", "v", 2 * kSecond);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("c"));
  // In the same tick, too.
  touch_for("a", 2 * kSecond);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("a"));
  harness.Pass(kSecond);
  touch_for("b", kSecond);
  const std::vector<Told> told = reader.Look();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].key, "b");
  EXPECT_EQ(told[0].put_us, kStartUs + kSecond);
}

TEST(UpcomingTest, WhatIsRemovedOrPutAnewIsNotTold) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.Put("removed", "v");
  harness.Put("anew", "v");
  harness.Put("stays", "v");
  harness.Pass(5 * kSecond);
  harness.Apply(Operation::Remove("removed"));
  harness.Put("anew", "v");
  harness.Pass(2 * kSecond);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("stays"));
  harness.Pass(5 * kSecond);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("anew"));
}

TEST(UpcomingTest, AnOverwriteInTheSameBucketIsToldAgainOnlyInAnotherSize) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.PutFor("a", "one", 2 * kSecond);
  EXPECT_THAT(reader.Look(), SizeIs(1));
  harness.PutFor("a", "two", 2 * kSecond);
  EXPECT_THAT(reader.Look(), IsEmpty());
  const uint64_t version = harness.PutFor("a", "three", 2 * kSecond).version;
  const std::vector<Told> told = reader.Look();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].version, version);
}

TEST(UpcomingTest, WhatComesWithLessThanTheLeadTimeLeftIsToldSoon) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  EXPECT_THAT(reader.Drain(), IsEmpty());
  harness.PutFor("a", "v", 2 * kSecond);
  EXPECT_EQ(reader.cursor().NextDueUs(), kStartUs + kSecond);
  harness.Pass(kSecond - 1);
  EXPECT_THAT(reader.Drain(), IsEmpty());
  harness.Pass(1);
  EXPECT_THAT(KeysOf(reader.Drain()), ElementsAre("a"));
}

TEST(UpcomingTest, SoonIsABucketWidthOrASecond) {
  MapHarness narrow(WithBuckets(10 * kSecond, 101));
  LeadReader narrow_reader(&narrow, kLeadUs);
  narrow_reader.Drain();
  EXPECT_EQ(narrow_reader.cursor().NextDueUs(), kStartUs + kSecond / 10);
  MapHarness wide(WithBuckets(3600 * kSecond, 2));
  LeadReader wide_reader(&wide, kLeadUs);
  wide_reader.Drain();
  EXPECT_EQ(wide_reader.cursor().NextDueUs(), kStartUs + kSecond);
}

TEST(UpcomingTest, ABucketThatComesWithinTheLeadTimeEarlierThanSoonIsNotLate) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.Put("a", "v");
  harness.Pass(7 * kSecond - 5);
  EXPECT_THAT(reader.Drain(), IsEmpty());
  EXPECT_EQ(reader.cursor().NextDueUs(), kStartUs + 7 * kSecond);
}

TEST(UpcomingTest, TheDeadAreNotTold) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.Put("a", "v");
  harness.Pass(10 * kSecond);
  EXPECT_THAT(reader.Look(), IsEmpty());
  EXPECT_EQ(reader.chunk().watermark_us, harness.now_us());
  harness.Sweep();
  EXPECT_THAT(reader.Look(), IsEmpty());
}

TEST(UpcomingTest, TheFewestBuckets) {
  MapHarness harness(WithBuckets(10 * kSecond, 2));
  LeadReader reader(&harness, kLeadUs);
  harness.Pass(kSecond);
  harness.Put("a", "v");
  harness.GoTo(kStartUs + 17 * kSecond - 1);
  EXPECT_THAT(reader.Look(), IsEmpty());
  harness.Pass(1);
  EXPECT_THAT(KeysOf(reader.Drain()), ElementsAre("a"));
}

TEST(UpcomingTest, ALeadTimeLongerThanTheTtlTellsEveryPut) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, 3600 * kSecond);
  for (int i = 0; i < 50; ++i) {
    harness.Put(absl::StrCat("key", i), "v");
    EXPECT_THAT(KeysOf(reader.Look()), ElementsAre(absl::StrCat("key", i)));
    harness.Pass(kSecond / 3);
  }
}

TEST(UpcomingTest, EachCursorHasItsOwnLeadTime) {
  MapHarness harness(Tens());
  LeadReader early(&harness, 6 * kSecond);
  LeadReader late(&harness, 2 * kSecond);
  harness.Put("a", "v");
  harness.Pass(4 * kSecond);
  EXPECT_THAT(early.Look(), SizeIs(1));
  EXPECT_THAT(late.Look(), IsEmpty());
  harness.Pass(4 * kSecond);
  EXPECT_THAT(early.Look(), IsEmpty());
  EXPECT_THAT(late.Look(), SizeIs(1));
  EXPECT_EQ(harness.Statistics().watchers, 3);
}

TEST(UpcomingTest, ARoundIsInOrderOfDeathAndABucketOfAllShardsIsOneBatch) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, 20 * kSecond);
  for (int second = 0; second < 5; ++second) {
    for (int i = 0; i < 200; ++i) {
      harness.Put(absl::StrCat(second, "/", i), "v");
    }
    harness.Pass(kSecond);
  }
  EXPECT_THAT(reader.Look(), SizeIs(1'000));
  ASSERT_THAT(reader.chunk().batches, SizeIs(5));
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(reader.chunk().batches[i]->death_us(),
              kStartUs + (10 + i) * kSecond);
  }
}

TEST(UpcomingTest, AReadIsBoundedAndTheWatermarkWaitsForTheLast) {
  constexpr int kEntries = 2 * kMaxEventBatchEvents + 1;
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  for (int i = 0; i < kEntries; ++i) harness.Put(absl::StrCat("key", i), "v");
  harness.Pass(8 * kSecond);
  size_t told = 0;
  int reads = 0;
  do {
    const size_t events = reader.Read().size();
    EXPECT_LE(events, static_cast<size_t>(kMaxEventBatchEvents));
    EXPECT_EQ(reader.chunk().watermark_us,
              reader.more() ? 0 : harness.now_us());
    told += events;
    ++reads;
  } while (reader.more());
  EXPECT_EQ(told, static_cast<size_t>(kEntries));
  EXPECT_LE(reads, 6);
  EXPECT_THAT(reader.told(), SizeIs(kEntries));
}

TEST(UpcomingTest, LargeValuesComeAloneOrUpToTheBytesAsked) {
  MapOptions options = OneShard();
  options.max_value_bytes = 4 << 20;
  MapHarness harness(options);
  LeadReader reader(&harness, 20 * kSecond);
  harness.Put("small", "v");
  for (int i = 0; i < 8; ++i) {
    harness.Put(absl::StrCat("large", i), std::string(kLargeBytes, 'v'));
  }
  harness.Put("huge", std::string(4 << 20, 'v'));
  harness.Put("last", "v");
  std::vector<std::string> keys;
  do {
    size_t bytes = 0;
    const std::vector<Told> events = reader.Read();
    for (const Told& told : events) bytes += told.value.size();
    EXPECT_TRUE(bytes <= (1 << 20) || events.size() == 1) << bytes;
    for (const Told& told : events) keys.push_back(told.key);
  } while (reader.more());
  EXPECT_THAT(keys,
              ::testing::UnorderedElementsAre(
                  "small", "large0", "large1", "large2", "large3", "large4",
                  "large5", "large6", "large7", "huge", "last"));
}

// They stand behind the segment that small ones go on to be put into.
TEST(UpcomingTest, SmallAndLargeOnesInTurnAreEachToldOnce) {
  MapHarness harness(OneShard());
  LeadReader reader(&harness, 20 * kSecond);
  for (int i = 0; i < 40; ++i) {
    const std::string small = absl::StrCat("small", i);
    const std::string large = absl::StrCat("large", i);
    harness.Put(small, "v");
    if (i % 2 == 0) harness.Put(large, std::string(kLargeBytes, 'v'));
    const std::vector<std::string> told = KeysOf(reader.Look());
    if (i % 2 == 0) {
      EXPECT_THAT(told, ElementsAre(large, small));
    } else {
      EXPECT_THAT(told, ElementsAre(small));
    }
    if (i % 3 == 0) harness.Apply(Operation::Remove(large));
    if (i % 5 == 0) harness.Apply(Operation::Remove(small));
  }
}

TEST(UpcomingTest, ABucketThatWasEmptiedAndFilledAgainIsToldAgain) {
  MapHarness harness(OneShard());
  LeadReader reader(&harness, 20 * kSecond);
  for (int i = 0; i < 100; ++i) {
    harness.Put("a", "v");
    if (i % 3 == 0) harness.Put("b", "v");
    EXPECT_THAT(reader.Look(), SizeIs(i % 3 == 0 ? 2 : 1));
    harness.Apply(Operation::Remove("a"));
    harness.Apply(Operation::Remove("b"));
    if (i % 2 == 0) {
      EXPECT_THAT(reader.Look(), IsEmpty());
    }
    // Another bucket has its turn: an empty one is given up.
    if (i % 5 == 0) harness.PutFor("c", "v", 1'000 * kSecond);
  }
}

TEST(UpcomingTest, WhatIsKilledByHandIsNotToldAndTheOthersAre) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, 5 * kSecond);
  harness.Put("first", "v");
  harness.Pass(kSecond);
  harness.Put("second", "v");
  harness.Pass(5 * kSecond);
  EXPECT_EQ(harness.Rotate(), 1);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("second"));
  EXPECT_EQ(harness.Rotate(), 1);
  EXPECT_THAT(reader.Look(), IsEmpty());
  harness.PutFor("second", "v", 5 * kSecond);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("second"));
}

// Its segments are still there, and wait for the sweep.
TEST(UpcomingTest, ABucketThatComesAgainAfterItWasKilledIsReadFromItsBegin) {
  MapHarness harness(OneShard());
  LeadReader reader(&harness, 20 * kSecond);
  harness.Put("a", "v");
  EXPECT_THAT(reader.Look(), SizeIs(1));
  harness.Put("b", "v");
  EXPECT_EQ(harness.map().Rotate(harness.now_us()), 2);
  harness.Put("c", "v");
  reader.cursor().Refresh();
  const Upcoming::Chunk chunk =
      reader.cursor().Read(harness.now_us(), int64_t{1} << 20);
  ASSERT_THAT(chunk.batches, SizeIs(1));
  ASSERT_EQ(chunk.batches[0]->size(), 1);
  EXPECT_EQ(chunk.batches[0]->event(0).key, "c");
}

TEST(UpcomingTest, EvictionsBetweenTheReadsOfARoundLoseNothingElse) {
  MapOptions options = Tens();
  options.max_entries = 100;
  options.limit_policy = LimitPolicy::kEvictOldest;
  MapHarness harness(options);
  LeadReader reader(&harness, 20 * kSecond);
  for (int i = 0; i < 500; ++i) {
    harness.Put(absl::StrCat("key", i), "v");
    if (i % 10 == 0) harness.Pass(kSecond / 2);
    reader.Read(20);
  }
  reader.Drain();
  reader.Look();
  reader.ExpectAllTold();
}

TEST(UpcomingTest, ANewWidthHoldsFromTheNextRoundOn) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  reader.Drain();
  harness.Update(WithBuckets(10 * kSecond, 101));
  harness.Pass(kSecond);
  reader.Drain();
  EXPECT_EQ(reader.cursor().NextDueUs(), harness.now_us() + kSecond / 10);
}

TEST(UpcomingTest, TheEndOfTheMapWakesAndIsTold) {
  MapHarness harness(Tens());
  int wakes = 0;
  const auto cursor =
      harness.map().SubscribeUpcoming(kLeadUs, [&wakes] { ++wakes; });
  EXPECT_FALSE(cursor->Read(harness.now_us(), 1 << 20).closed);
  harness.map().Close();
  EXPECT_EQ(wakes, 1);
  const Upcoming::Chunk chunk = cursor->Read(harness.now_us(), 1 << 20);
  EXPECT_TRUE(chunk.closed);
  EXPECT_FALSE(chunk.more);
  EXPECT_TRUE(harness.map()
                  .SubscribeUpcoming(kLeadUs, [] {})
                  ->Read(harness.now_us(), 1 << 20)
                  .closed);
}

}  // namespace
}  // namespace timecache

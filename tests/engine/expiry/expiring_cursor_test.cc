// What is going to die: when it is told, what is told again and what not.

#include "server/engine/expiry/expiring_cursor.h"

#include <malloc.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/memory_budget.h"
#include "tests/support/engine/lead_reader.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kLeadUs = 3 * kSecond;
// Of a value that gets a segment of its own.
constexpr size_t kLargeBytes = 300 << 10;

NamespaceOptions OneCursorShard() {
  NamespaceOptions options = Tens();
  options.num_shards = 1;
  return options;
}

TEST(ExpiringCursorTest,
     AnEntryIsToldExactlyWhenItsBucketComesWithinTheLeadTime) {
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
  const std::vector<DeliveredEvent> told = reader.Drain();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].key, "a");
  EXPECT_EQ(told[0].value, "one");
  EXPECT_EQ(told[0].version, version);
  EXPECT_EQ(told[0].put_us, kStartUs + kSecond / 2);
  EXPECT_EQ(told[0].deadline_us, kStartUs + kSecond / 2 + 10 * kSecond);
  EXPECT_EQ(told[0].death_us, death_us);
  EXPECT_EQ(told[0].cause, Cause::kExpiring);
}

// Their version says nothing of when they came into the bucket, whose other
// entries have been told already.
TEST(ExpiringCursorTest, WhatIsTouchedIntoABucketThatWasReadIsTold) {
  MapHarness harness(OneCursorShard());
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
  const std::vector<DeliveredEvent> told = reader.Look();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].key, "b");
  EXPECT_EQ(told[0].put_us, kStartUs + kSecond);
}

// A large record moves behind the segment that small ones are appended to, which is
// empty here and begins anew with the next of them.
TEST(ExpiringCursorTest, WhatComesAfterALargeRecordWasTouchedThereIsTold) {
  MapHarness harness(OneCursorShard());
  LeadReader reader(&harness, kLeadUs);
  harness.PutFor("large", std::string(kLargeBytes, 'l'), 5 * kSecond);
  harness.PutFor("gone", "v", 2 * kSecond);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("gone"));
  harness.Apply(Operation::Remove("gone"));
  harness.Apply(Operation::Touch("large").WithTtl(2 * kSecond));
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("large"));
  harness.PutFor("small", "v", 2 * kSecond);
  EXPECT_THAT(KeysOf(reader.Look()), ElementsAre("small"));
}

TEST(ExpiringCursorTest,
     AnOverwriteInTheSameBucketIsToldAgainOnlyInAnotherSize) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.PutFor("a", "one", 2 * kSecond);
  EXPECT_THAT(reader.Look(), SizeIs(1));
  harness.PutFor("a", "two", 2 * kSecond);
  EXPECT_THAT(reader.Look(), IsEmpty());
  const uint64_t version = harness.PutFor("a", "three", 2 * kSecond).version;
  const std::vector<DeliveredEvent> told = reader.Look();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0].version, version);
}

TEST(ExpiringCursorTest, WhatComesWithLessThanTheLeadTimeLeftIsToldSoon) {
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

TEST(ExpiringCursorTest, SoonIsABucketWidthOrASecond) {
  MapHarness narrow(WithBuckets(10 * kSecond, 101));
  LeadReader narrow_reader(&narrow, kLeadUs);
  narrow_reader.Drain();
  EXPECT_EQ(narrow_reader.cursor().NextDueUs(), kStartUs + kSecond / 10);
  MapHarness wide(WithBuckets(3600 * kSecond, 2));
  LeadReader wide_reader(&wide, kLeadUs);
  wide_reader.Drain();
  EXPECT_EQ(wide_reader.cursor().NextDueUs(), kStartUs + kSecond);
}

TEST(ExpiringCursorTest,
     ABucketThatComesWithinTheLeadTimeEarlierThanSoonIsNotLate) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  harness.Put("a", "v");
  harness.Pass(7 * kSecond - 5);
  EXPECT_THAT(reader.Drain(), IsEmpty());
  EXPECT_EQ(reader.cursor().NextDueUs(), kStartUs + 7 * kSecond);
}

TEST(ExpiringCursorTest, TheFewestBuckets) {
  MapHarness harness(WithBuckets(10 * kSecond, 2));
  LeadReader reader(&harness, kLeadUs);
  harness.Pass(kSecond);
  harness.Put("a", "v");
  harness.GoTo(kStartUs + 17 * kSecond - 1);
  EXPECT_THAT(reader.Look(), IsEmpty());
  harness.Pass(1);
  EXPECT_THAT(KeysOf(reader.Drain()), ElementsAre("a"));
}

TEST(ExpiringCursorTest,
     ARoundIsInOrderOfDeathAndABucketOfAllShardsIsOneBatch) {
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

TEST(ExpiringCursorTest, AReadIsBoundedAndTheWatermarkWaitsForTheLast) {
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

TEST(ExpiringCursorTest, LargeValuesComeAloneOrUpToTheBytesAsked) {
  NamespaceOptions options = OneCursorShard();
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
    const std::vector<DeliveredEvent> events = reader.Read();
    for (const DeliveredEvent& told : events) bytes += told.value.size();
    EXPECT_TRUE(bytes <= (1 << 20) || events.size() == 1) << bytes;
    for (const DeliveredEvent& told : events) keys.push_back(told.key);
  } while (reader.more());
  EXPECT_THAT(keys,
              ::testing::UnorderedElementsAre(
                  "small", "large0", "large1", "large2", "large3", "large4",
                  "large5", "large6", "large7", "huge", "last"));
}

// Its segments are still there, and wait for the sweep.
TEST(ExpiringCursorTest,
     ABucketThatComesAgainAfterItWasKilledIsReadFromItsBegin) {
  MapHarness harness(OneCursorShard());
  LeadReader reader(&harness, 20 * kSecond);
  harness.Put("a", "v");
  EXPECT_THAT(reader.Look(), SizeIs(1));
  harness.Put("b", "v");
  EXPECT_EQ(harness.map().Rotate(harness.now_us()), 2);
  harness.Put("c", "v");
  reader.cursor().Refresh();
  const ExpiringCursor::Chunk chunk =
      reader.cursor().Read(harness.now_us(), int64_t{1} << 20);
  ASSERT_THAT(chunk.batches, SizeIs(1));
  ASSERT_EQ(chunk.batches[0]->size(), 1);
  EXPECT_EQ(chunk.batches[0]->event(0).key, "c");
}

TEST(ExpiringCursorTest, EvictionsBetweenTheReadsOfARoundLoseNothingElse) {
  NamespaceOptions options = Tens();
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

TEST(ExpiringCursorTest, ANewWidthHoldsFromTheNextRoundOn) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  reader.Drain();
  harness.Update(WithBuckets(10 * kSecond, 101));
  harness.Pass(kSecond);
  reader.Drain();
  EXPECT_EQ(reader.cursor().NextDueUs(), harness.now_us() + kSecond / 10);
}

TEST(ExpiringCursorTest, TheEndOfTheMapWakesAndIsTold) {
  MapHarness harness(Tens());
  int wakes = 0;
  const auto cursor = *harness.map().expiring().Subscribe(
      {.lead_us = kLeadUs}, [&wakes] { ++wakes; });
  EXPECT_FALSE(cursor->Read(harness.now_us(), 1 << 20).closed);
  harness.map().Close();
  EXPECT_EQ(wakes, 1);
  const ExpiringCursor::Chunk chunk = cursor->Read(harness.now_us(), 1 << 20);
  EXPECT_TRUE(chunk.closed);
  EXPECT_FALSE(chunk.more);
  const auto late =
      *harness.map().expiring().Subscribe({.lead_us = kLeadUs}, [] {});
  EXPECT_TRUE(late->Read(harness.now_us(), 1 << 20).closed);
}

// --- What cursors share, and what they hold.

// As many buckets as entries.
void FillManyBuckets(MapHarness* harness, int entries) {
  for (int i = 0; i < entries; ++i) {
    harness->PutFor(absl::StrCat("key", i), "v", (100 + i) * kSecond);
  }
}

TEST(ExpiringFeedTest, WhatCursorsHoldDoesNotGrowWithTheBuckets) {
  constexpr int kEntries = 20'000;
  constexpr int kCursors = 10;
  MapHarness harness(Tens());
  FillManyBuckets(&harness, kEntries);
  const auto heap_bytes = [] {
    return static_cast<int64_t>(mallinfo2().uordblks);
  };
  std::vector<std::unique_ptr<ExpiringCursor>> cursors;
  const int64_t before = heap_bytes();
  for (int i = 0; i < kCursors; ++i) {
    cursors.push_back(*harness.map().expiring().Subscribe(
        {.lead_us = 30'000 * kSecond, .key_prefix = "none"}, [] {}));
    while (cursors.back()->Read(harness.now_us(), 1 << 20).more) {
    }
    EXPECT_EQ(cursors.back()->Read(harness.now_us(), 1 << 20).watermark_us,
              harness.now_us());
  }
  EXPECT_LT(heap_bytes() - before, kCursors * 16'384);
}

TEST(ExpiringFeedTest, WhatIsNewIsReadOnceForAllCursors) {
  MapHarness harness(Tens());
  LeadHistory history;
  LeadReader first(&harness, 20 * kSecond, &history);
  LeadReader second(&harness, 30 * kSecond, &history);
  LeadReader third(&harness, 5 * kSecond, &history);
  for (LeadReader* reader : {&first, &second, &third}) reader->Look();
  for (int i = 0; i < 1'000; ++i) harness.Put(absl::StrCat("key", i), "v");
  harness.Pass(kSecond);
  EXPECT_THAT(first.Look(), SizeIs(1'000));
  EXPECT_EQ(first.chunk().shared, first.chunk().batches.size());
  const auto batch = first.chunk().batches[0];
  EXPECT_THAT(second.Look(), SizeIs(1'000));
  EXPECT_EQ(second.chunk().batches[0], batch);
  EXPECT_THAT(third.Look(), IsEmpty());
  EXPECT_EQ(harness.map().expiring().GetStatistics().records, 1'000u);
}

TEST(ExpiringFeedTest, WhatDiesBehindAllFrontsIsNotGathered) {
  MapHarness harness(Tens());
  LeadReader reader(&harness, kLeadUs);
  reader.Look();
  for (int i = 0; i < 1'000; ++i) harness.Put(absl::StrCat("key", i), "v");
  harness.Pass(kSecond);
  EXPECT_THAT(reader.Look(), IsEmpty());
  EXPECT_EQ(harness.map().expiring().GetStatistics().records, 0u);
  harness.Pass(7 * kSecond);
  EXPECT_THAT(reader.Look(), SizeIs(1'000));
}

TEST(ExpiringFeedTest, WhatIsKeptIsCountedAndBounded) {
  MapHarness harness(OneCursorShard());
  LeadHistory history;
  LeadReader busy(&harness, 20 * kSecond, &history);
  LeadReader stuck(&harness, 20 * kSecond, &history);
  busy.Look();
  stuck.Look();
  const int64_t used = MemoryBudget::Process().used_bytes();
  const int64_t entries = harness.Statistics().memory_bytes;
  for (int i = 0; i < 40; ++i) {
    harness.Put(absl::StrCat("key", i), std::string(1 << 20, 'v'));
    harness.Pass(kSecond / 100);
    EXPECT_THAT(busy.Look(), SizeIs(1));
    harness.Apply(Operation::Remove(absl::StrCat("key", i)));
  }
  EXPECT_GT(MemoryBudget::Process().used_bytes() - used, 4 << 20);
  EXPECT_GT(harness.Statistics().memory_bytes - entries, 4 << 20);
  EXPECT_LT(MemoryBudget::Process().used_bytes() - used,
            ExpiringFeed::kMaxBytes + (4 << 20));
}

TEST(ExpiringFeedTest, ACursorThatComesTooLateIsToldAllAndNothingTwice) {
  MapHarness harness(Tens());
  LeadHistory history;
  LeadReader busy(&harness, 20 * kSecond, &history);
  LeadReader late(&harness, 20 * kSecond, &history);
  for (int i = 0; i < 10; ++i) {
    harness.Put(absl::StrCat("before", i), "v");
  }
  harness.Pass(1);
  EXPECT_THAT(busy.Look(), SizeIs(10));
  EXPECT_THAT(late.Look(), SizeIs(10));
  for (int i = 0; i < 10; ++i) {
    harness.Pass(kSecond / 2);
    harness.PutFor(absl::StrCat("during", i), "v", 15 * kSecond);
    EXPECT_THAT(busy.Look(), SizeIs(1));
  }
  harness.Pass(ExpiringFeed::kMaxAgeUs - kSecond);
  const std::vector<DeliveredEvent> told = late.Look();
  EXPECT_THAT(told, SizeIs(10));
  EXPECT_EQ(late.chunk().shared, 0u);
  late.ExpectAllTold();
  for (const auto& [version, times] : late.told()) EXPECT_EQ(times, 1);
  // And is in time again.
  harness.PutFor("after", "v", 15 * kSecond);
  EXPECT_THAT(KeysOf(late.Look()), ElementsAre("after"));
  EXPECT_EQ(late.chunk().shared, 1u);
}

// Reads to the end of a round that begins now.
size_t CountEvents(ExpiringCursor* cursor, int64_t now_us) {
  cursor->Refresh();
  size_t events = 0;
  bool more = true;
  while (more) {
    const ExpiringCursor::Chunk chunk = cursor->Read(now_us, 1 << 20);
    for (const auto& batch : chunk.batches) {
      events += static_cast<size_t>(batch->size());
    }
    more = chunk.more;
  }
  return events;
}

TEST(ExpiringFeedTest, MoreChangesThanAreListedOrKeptAreFoundByAWalk) {
  constexpr auto kBuckets = static_cast<int>(ExpiringFeed::kMaxChanges) + 10;
  NamespaceOptions options = OneCursorShard();
  options.max_ttl_us = int64_t{1'000'000} * kSecond;
  MapHarness harness(options);
  const auto cursor = *harness.map().expiring().Subscribe(
      {.lead_us = int64_t{900'000} * kSecond}, [] {});
  harness.Put("first", "v");
  harness.Pass(1);
  EXPECT_EQ(CountEvents(cursor.get(), harness.now_us()), 1u);
  FillManyBuckets(&harness, kBuckets);
  harness.Pass(1);
  EXPECT_EQ(CountEvents(cursor.get(), harness.now_us()), size_t{kBuckets});
  for (int i = 0; i < 12; ++i) {
    harness.Put(absl::StrCat("large", i), std::string(1 << 20, 'l'));
  }
  harness.Pass(1);
  EXPECT_EQ(CountEvents(cursor.get(), harness.now_us()), 12u);
  harness.Put("last", "v");
  EXPECT_EQ(CountEvents(cursor.get(), harness.now_us()), 1u);
}

TEST(ExpiringFeedTest, OneCursorMoreThanAllowedIsRefused) {
  MapHarness harness(Tens());
  const auto subscribe = [&] {
    return harness.map().expiring().Subscribe({.lead_us = kLeadUs}, [] {});
  };
  std::vector<std::unique_ptr<ExpiringCursor>> cursors;
  while (cursors.size() < ExpiringFeed::kMaxCursors) {
    cursors.push_back(*subscribe());
  }
  const auto refused = subscribe();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused.status()), Reason::kMaxExpiringWatchers);
  cursors.pop_back();
  EXPECT_TRUE(subscribe().ok());
}

TEST(ExpiringFeedTest, APutNotesNothingOnceTheLastCursorIsGone) {
  MapHarness harness(Tens());
  const auto subscribe = [&harness] {
    return *harness.map().expiring().Subscribe({.lead_us = 20 * kSecond},
                                               [] {});
  };
  const int64_t used = MemoryBudget::Process().used_bytes();
  {
    const auto cursor = subscribe();
    cursor->Read(harness.now_us(), 1 << 20);
    for (int i = 0; i < 1'000; ++i) harness.Put(absl::StrCat("key", i), "v");
  }
  for (int i = 0; i < 1'000; ++i) {
    harness.Apply(Operation::Remove(absl::StrCat("key", i)));
  }
  harness.Put("again", "v");
  EXPECT_LT(MemoryBudget::Process().used_bytes() - used, 256 << 10);
  const auto cursor = subscribe();
  const ExpiringCursor::Chunk chunk = cursor->Read(harness.now_us(), 1 << 20);
  EXPECT_THAT(chunk.batches, SizeIs(1));
  EXPECT_EQ(chunk.shared, 0u);
}

TEST(ExpiringFeedTest, AFilterHoldsForWhatTheCursorReadsItself) {
  MapHarness harness(Tens());
  harness.Put("a1", "one");
  harness.Put("b1", "two");
  const auto cursor = *harness.map().expiring().Subscribe(
      {.lead_us = 20 * kSecond, .key_prefix = "b", .keys_only = true}, [] {});
  const ExpiringCursor::Chunk chunk = cursor->Read(harness.now_us(), 1 << 20);
  ASSERT_THAT(chunk.batches, SizeIs(1));
  ASSERT_EQ(chunk.batches[0]->size(), 1);
  EXPECT_EQ(chunk.batches[0]->event(0).key, "b1");
  EXPECT_EQ(chunk.batches[0]->event(0).value, "");
}

}  // namespace
}  // namespace timecache::server

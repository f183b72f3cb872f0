#include "server/engine/expiry/expiry_log.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
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
using ::testing::SizeIs;
using Start = ExpiryLog::Start;

constexpr int64_t kLogMiB = 1 << 20;

ExpiredEvent EventOf(absl::string_view key, absl::string_view value) {
  ExpiredEvent event;
  event.key = key;
  event.value = value;
  return event;
}

std::shared_ptr<const EventBatch> BatchOf(
    int64_t death_us, std::initializer_list<std::string> keys,
    size_t value_bytes = 0, Cause cause = Cause::kExpired) {
  auto batch =
      std::make_shared<EventBatch>("map", Death{death_us, death_us, cause});
  const std::string value(value_bytes, 'v');
  for (const std::string& key : keys) batch->Add(EventOf(key, value));
  batch->ShrinkToFit();
  return batch;
}

std::vector<std::string> Keys(const Reading& reading) {
  std::vector<std::string> keys;
  for (const DeliveredEvent& told : reading.events) keys.push_back(told.key);
  return keys;
}

std::unique_ptr<ExpiryLog::Cursor> Subscribe(ExpiryLog* log, Start start,
                                             int64_t now_us = 0,
                                             uint64_t pending = 0) {
  return log->Subscribe(start, now_us, pending, [] {});
}

// Appends, and leaves the watermark where it is.
void Append(ExpiryLog* log, std::shared_ptr<const EventBatch> batch,
            int64_t now_us) {
  log->Append(std::move(batch), now_us, INT64_MIN);
}

TEST(EventBatchTest, GivesBackWhatWasPutIn) {
  EventBatch batch("map", {700, 701, Cause::kRotated});
  const std::string binary("\0\xff\n", 3);
  batch.Add({"key", "value", 11, 100, 600});
  batch.Add({binary, "", 12, -5, kNeverUs});
  ASSERT_EQ(batch.size(), 2);
  EXPECT_EQ(batch.death_us(), 700);
  EXPECT_EQ(batch.death().published_us, 701);
  EXPECT_EQ(batch.cause(), Cause::kRotated);
  EXPECT_EQ(batch.event(0).key, "key");
  EXPECT_EQ(batch.event(0).value, "value");
  EXPECT_EQ(batch.event(0).version, 11u);
  EXPECT_EQ(batch.event(0).put_us, 100);
  EXPECT_EQ(batch.event(0).deadline_us, 600);
  EXPECT_EQ(batch.event(1).key, binary);
  EXPECT_EQ(batch.event(1).value, "");
  EXPECT_EQ(batch.event(1).version, 12u);
  EXPECT_EQ(batch.event(1).put_us, -5);
  EXPECT_EQ(batch.event(1).deadline_us, kNeverUs);
}

TEST(EventBatchTest, HoldsNoMoreEventsThanABatchMay) {
  EventBatch batch("map", Death());
  const ExpiredEvent event = EventOf("k", "v");
  while (batch.size() < kMaxEventBatchEvents) {
    ASSERT_TRUE(batch.HasRoomFor(event));
    batch.Add(event);
  }
  EXPECT_FALSE(batch.HasRoomFor(event));
}

TEST(EventBatchTest, HoldsNoMoreBytesThanABatchMayUnlessItIsOneEvent) {
  EventBatch small("map", Death());
  const std::string half(kMaxEventBatchBytes / 2 + 1, 'h');
  ASSERT_TRUE(small.HasRoomFor(EventOf("k", half)));
  small.Add(EventOf("k", half));
  EXPECT_FALSE(small.HasRoomFor(EventOf("k", half)));
  EXPECT_GE(small.bytes(), static_cast<int64_t>(half.size()));

  EventBatch large("map", Death());
  const std::string huge(kMaxValueBytesLimit, 'x');
  ASSERT_TRUE(large.HasRoomFor(EventOf("k", huge)));
  large.Add(EventOf("k", huge));
  EXPECT_EQ(large.event(0).value, huge);
  EXPECT_FALSE(large.HasRoomFor(EventOf("", "")));
}

TEST(ExpiryLogTest, CursorsShareTheBytesOfABatch) {
  ExpiryLog log(kSecond, kLogMiB);
  const auto one = Subscribe(&log, Start::kNow);
  const auto two = Subscribe(&log, Start::kNow);
  const auto batch = BatchOf(100, {"a"});
  Append(&log, batch, 100);
  EXPECT_EQ(one->Read(kLogMiB).batches.at(0).get(), batch.get());
  EXPECT_EQ(two->Read(kLogMiB).batches.at(0).get(), batch.get());
}

TEST(ExpiryLogTest, ReadTakesAtLeastOneBatchHoweverLittleWasAskedFor) {
  ExpiryLog log(kSecond, kLogMiB);
  const auto cursor = Subscribe(&log, Start::kNow);
  Append(&log, BatchOf(100, {"a"}, 1'000), 100);
  Append(&log, BatchOf(200, {"b"}, 1'000), 200);
  const ExpiryLog::Chunk first = cursor->Read(1);
  EXPECT_EQ(first.batches.size(), 1u);
  EXPECT_TRUE(first.more);
  const ExpiryLog::Chunk second = cursor->Read(1);
  EXPECT_EQ(second.batches.size(), 1u);
  EXPECT_FALSE(second.more);
  EXPECT_THAT(cursor->Read(1).batches, IsEmpty());
}

TEST(ExpiryLogTest, StartNowSkipsWhatDiedAtOrBefore) {
  ExpiryLog log(kSecond, kLogMiB);
  Append(&log, BatchOf(100, {"before"}), 100);
  // Two events are dead at the start of the watch, and swept only later.
  const auto cursor = Subscribe(&log, Start::kNow, 200, 2);
  Append(&log, BatchOf(150, {"unswept"}), 210);
  Append(&log, BatchOf(200, {"at"}), 210);
  Append(&log, BatchOf(201, {"after"}), 210);
  log.AdvanceWatermark(210);
  const Reading reading = ReadAll(cursor.get());
  EXPECT_THAT(Keys(reading), ElementsAre("after"));
  EXPECT_EQ(reading.lost, 0u);
  EXPECT_EQ(reading.watermark_us, 210);
}

TEST(ExpiryLogTest, StartNowKnowsAllUpToNow) {
  ExpiryLog log(kSecond, kLogMiB);
  log.AdvanceWatermark(100);
  const auto cursor = Subscribe(&log, Start::kNow, 200);
  EXPECT_EQ(ReadAll(cursor.get()).watermark_us, 200);
  log.AdvanceWatermark(150);
  EXPECT_EQ(ReadAll(cursor.get()).watermark_us, 200);
  log.AdvanceWatermark(300);
  EXPECT_EQ(ReadAll(cursor.get()).watermark_us, 300);
}

TEST(ExpiryLogTest, RetainsByAge) {
  ExpiryLog log(kSecond, kLogMiB);
  Append(&log, BatchOf(100, {"a", "b"}), 1'000);
  EXPECT_EQ(log.GetStatistics().events, 2u);
  EXPECT_GT(log.GetStatistics().bytes, 0);
  EXPECT_LE(log.NextTrimUs(1'000), 1'000 + kSecond + 1);
  EXPECT_GE(log.NextTrimUs(1'000), 1'000 + kSecond);
  log.Trim(1'000 + kSecond - 1);
  EXPECT_EQ(log.GetStatistics().events, 2u);
  log.Trim(1'000 + kSecond + 1);
  EXPECT_EQ(log.GetStatistics().events, 0u);
  EXPECT_EQ(log.GetStatistics().bytes, 0);
  EXPECT_EQ(log.NextTrimUs(2 * kSecond), kNeverUs);
}

// As what is killed by hand is: the clock is a tick behind it.
TEST(ExpiryLogTest, WhatIsPublishedATickAheadShortensNoRetention) {
  ExpiryLog log(kSecond, kLogMiB);
  Append(&log, BatchOf(100, {"a"}), 1'000);
  Append(&log, BatchOf(200, {"b"}), 1'000 + kSecond);
  EXPECT_EQ(log.GetStatistics().events, 2u);
  log.Trim(1'000 + kSecond);
  EXPECT_EQ(log.GetStatistics().events, 1u);
}

TEST(ExpiryLogTest, NobodyWantsEventsWithoutRetentionAndCursors) {
  ExpiryLog log(0, kLogMiB);
  EXPECT_FALSE(log.Wanted());
  auto cursor = Subscribe(&log, Start::kNow);
  EXPECT_TRUE(log.Wanted());
  Append(&log, BatchOf(100, {"a"}), 100);
  EXPECT_THAT(Keys(ReadAll(cursor.get())), ElementsAre("a"));
  cursor.reset();
  EXPECT_FALSE(log.Wanted());
  log.SetRetention(kSecond, kLogMiB, 100);
  EXPECT_TRUE(log.Wanted());
}

TEST(ExpiryLogTest, SkippedEventsAreLostToACursorThatWasThere) {
  ExpiryLog log(0, kLogMiB);
  log.Skip(4);
  const auto cursor = Subscribe(&log, Start::kNow);
  const ExpiryLog::Point point = cursor->Read(kLogMiB).point;
  EXPECT_EQ(ReadAll(cursor.get()).lost, 0u);
  log.Skip(3);
  EXPECT_EQ(ReadAll(cursor.get()).lost, 3u);
  // Also to one that comes back, and behind what is still retained.
  EXPECT_EQ(ReadAll(log.Resume(point, 0, [] {})->get()).lost, 3u);
  Append(&log, BatchOf(100, {"a", "b"}), 100);
  log.Skip(3);
  Append(&log, BatchOf(300, {"c"}), 300);
  const Reading reading = ReadAll(cursor.get());
  EXPECT_EQ(reading.events.size() + reading.lost, 6u);
  EXPECT_THAT(Keys(reading), ElementsAre("c"));
}

TEST(ExpiryLogTest, TheWatermarkNeverGoesBack) {
  ExpiryLog log(kSecond, kLogMiB);
  log.AdvanceWatermark(500);
  log.AdvanceWatermark(400);
  EXPECT_EQ(log.watermark_us(), 500);
  const auto cursor = Subscribe(&log, Start::kEarliest);
  EXPECT_EQ(ReadAll(cursor.get()).watermark_us, 500);
  // A batch that is not read yet holds the watermark; it does not pull it back.
  Append(&log, BatchOf(501, {"a"}, 1'000), 501);
  Append(&log, BatchOf(502, {"b"}, 1'000), 502);
  EXPECT_GE(cursor->Read(1).watermark_us, 500);
  EXPECT_GE(cursor->Read(1).watermark_us, 500);
}

TEST(ExpiryLogTest, WakesItsCursorsWhenThereIsSomethingToRead) {
  ExpiryLog log(kSecond, kLogMiB);
  int wakes = 0;
  auto cursor = log.Subscribe(Start::kNow, 0, 0, [&wakes] { ++wakes; });
  const int before_append = wakes;
  Append(&log, BatchOf(100, {"a"}), 100);
  EXPECT_GT(wakes, before_append);
  ReadAll(cursor.get());
  EXPECT_EQ(log.GetStatistics().cursors, 1);
  cursor.reset();
  EXPECT_EQ(log.GetStatistics().cursors, 0);
  const int after_leaving = wakes;
  Append(&log, BatchOf(200, {"b"}), 200);
  log.Close();
  EXPECT_EQ(wakes, after_leaving);
}

TEST(ExpiryLogTest, WakesACursorOnceUntilItHasReadToTheEnd) {
  ExpiryLog log(kSecond, kLogMiB);
  int wakes = 0;
  const auto cursor = log.Subscribe(Start::kNow, 0, 0, [&wakes] { ++wakes; });
  for (int i = 0; i < 3; ++i) Append(&log, BatchOf(100, {"a"}, 1'000), 100);
  EXPECT_EQ(wakes, 1);
  EXPECT_TRUE(cursor->Read(1).more);
  Append(&log, BatchOf(100, {"a"}, 1'000), 100);
  EXPECT_EQ(wakes, 1);
  ReadAll(cursor.get());
  Append(&log, BatchOf(200, {"b"}), 200);
  EXPECT_EQ(wakes, 2);
  ReadAll(cursor.get());
  log.Close();
  EXPECT_EQ(wakes, 3);
}

TEST(ExpiryLogTest, ACursorReadsToTheEndBeforeItFindsTheLogClosed) {
  ExpiryLog log(kSecond, kLogMiB);
  int wakes = 0;
  const auto cursor = log.Subscribe(Start::kNow, 0, 0, [&wakes] { ++wakes; });
  Append(&log, BatchOf(100, {"a"}, 1'000), 100);
  Append(&log, BatchOf(200, {"b"}, 1'000), 200);
  EXPECT_EQ(wakes, 1);
  // It has been woken, and has not read yet: it will find both.
  log.Close();
  EXPECT_EQ(wakes, 1);
  const ExpiryLog::Chunk first = cursor->Read(1);
  EXPECT_EQ(first.batches.size(), 1u);
  EXPECT_FALSE(first.closed);
  const Reading rest = ReadAll(cursor.get());
  EXPECT_THAT(Keys(rest), ElementsAre("b"));
  EXPECT_TRUE(rest.closed || cursor->Read(1).closed);
}

TEST(ExpiryLogTest, ASubscriptionToAClosedLogFindsItClosed) {
  ExpiryLog log(kSecond, kLogMiB);
  log.Close();
  const auto cursor = Subscribe(&log, Start::kNow);
  EXPECT_TRUE(ReadAll(cursor.get()).closed);
}

// What a reader from there on has lost, as "events prefix".
std::vector<std::string> LostOf(ExpiryLog* log, const ExpiryLog::Point& point) {
  std::vector<std::string> all;
  for (const LostEvents& lost :
       (*log->Resume(point, 0, [] {}))->Read(kLogMiB).lost_events) {
    all.push_back(absl::StrCat(lost.events, " ", lost.prefix));
  }
  return all;
}

TEST(ExpiryLogTest, WhatLostKeysBeganWithIsKnown) {
  ExpiryLog log(kSecond, kLogMiB);
  ExpiryLog::Point point =
      Subscribe(&log, Start::kEarliest)->Read(kLogMiB).point;
  Append(&log, BatchOf(1, {"a-1"}), 1);
  // More batches, and more prefixes, than are remembered.
  for (int i = 0; i < 300; ++i) {
    const std::string key = absl::StrCat("b-", i / 3);
    Append(&log, BatchOf(2 + i, {key + "x", key + "y"}), 2 + i);
  }
  log.Trim(3 * kSecond);
  EXPECT_THAT(LostOf(&log, point), SizeIs(ExpiryLog::kMaxDroppedRanges));
  EXPECT_EQ(LostOf(&log, point).back(), "1 a-1");
  uint64_t events = 0;
  for (const LostEvents& lost :
       (*log.Resume(point, 0, [] {}))->Read(kLogMiB).lost_events) {
    events += lost.events;
    EXPECT_EQ(lost.MayHave("a-"), lost.prefix == "a-1");
    EXPECT_TRUE(lost.MayHave(""));
  }
  EXPECT_EQ(events, 601u);
  // The last ones are six of one prefix.
  point.next_event = log.next_event() - 5;
  EXPECT_THAT(LostOf(&log, point), ElementsAre("5 b-99"));
}

TEST(ExpiryLogTest, NothingIsKnownOfLostEventsThatWereNotGathered) {
  ExpiryLog log(kSecond, kLogMiB);
  ExpiryLog::Point point =
      Subscribe(&log, Start::kEarliest)->Read(kLogMiB).point;
  Append(&log, BatchOf(1, {"a"}), 1);
  log.Skip(1);
  EXPECT_THAT(LostOf(&log, point), IsEmpty());
  Append(&log, BatchOf(4 * kSecond, {"d", "e"}), 4 * kSecond);
  log.Trim(9 * kSecond);
  EXPECT_THAT(LostOf(&log, point), IsEmpty());
  point.next_event = log.next_event() - 2;
  EXPECT_THAT(LostOf(&log, point), ElementsAre("2 "));
}

TEST(ExpiryLogTest, APointOfAnotherLogOrOneAheadIsRefused) {
  ExpiryLog log(kSecond, kLogMiB), other(kSecond, kLogMiB);
  EXPECT_NE(log.id(), other.id());
  // Three that died are on their way into the log.
  ExpiryLog::Point point =
      Subscribe(&log, Start::kNow, 0, 3)->Read(kLogMiB).point;
  EXPECT_TRUE(log.Resume(point, 3, [] {}).ok());
  const absl::Status ahead = log.Resume(point, 2, [] {}).status();
  EXPECT_EQ(ahead.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReasonOf(ahead), Reason::kResumePointAhead);
  const absl::Status changed = other.Resume(point, 3, [] {}).status();
  EXPECT_EQ(changed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(changed), Reason::kLogChanged);
  EXPECT_EQ(other.GetStatistics().cursors, 0);
}

class Follower final : public ExpiryLog::Follower {
 public:
  void OnAppend(uint64_t first_event,
                const std::shared_ptr<const EventBatch>& batch) override {
    for (int i = 0; i < batch->size(); ++i) {
      told.push_back(absl::StrCat(first_event + static_cast<uint64_t>(i), "=",
                                  std::string(batch->event(i).key)));
    }
  }
  std::vector<std::string> told;
};

TEST(ExpiryLogTest, AFollowerIsToldOfWhatItAsksForAndKeepsEventsWanted) {
  ExpiryLog log(kSecond, kLogMiB);
  Append(&log, BatchOf(100, {"a", "b"}), 100);
  Follower now, earliest;
  EXPECT_EQ(log.Follow(&now, Start::kNow, 3), 6u);
  EXPECT_EQ(log.Follow(&earliest, Start::kEarliest, 3), 1u);
  Append(&log, BatchOf(200, {"c"}), 200);
  EXPECT_THAT(now.told, ElementsAre("3=c"));
  EXPECT_THAT(earliest.told, ElementsAre("1=a", "2=b", "3=c"));
  log.SetRetention(0, kLogMiB, 200);
  log.Unfollow(&earliest);
  EXPECT_TRUE(log.Wanted());
  log.Unfollow(&now);
  EXPECT_FALSE(log.Wanted());
  Append(&log, BatchOf(300, {"d"}), 300);
  EXPECT_EQ(now.told.size(), 1u);
}

// What was owed is made of places, all else of what was read.
void ExpectAccount(const ExpiryLog& log, uint64_t delivered, uint64_t lost,
                   uint64_t left, uint64_t pending) {
  const ExpiryLog::Statistics statistics = log.GetStatistics();
  EXPECT_EQ(statistics.delivered, delivered);
  EXPECT_EQ(statistics.lost, lost);
  EXPECT_EQ(statistics.left, left);
  EXPECT_EQ(statistics.pending, pending);
  EXPECT_EQ(statistics.owed, delivered + lost + left + pending);
}

TEST(ExpiryLogTest, EveryEventThatAWatchIsOwedIsAccountedFor) {
  ExpiryLog log(kSecond, 1);
  Append(&log, BatchOf(100, {"before"}), 100);
  auto slow = Subscribe(&log, Start::kEarliest);
  auto quick = Subscribe(&log, Start::kNow);
  // Three events have died and are not in the log yet: not for one from NOW on.
  auto late = Subscribe(&log, Start::kNow, 0, 3);
  ExpectAccount(log, 0, 0, 0, 1);
  Append(&log, BatchOf(200, {"a", "b", "c"}), 200);
  ExpectAccount(log, 0, 0, 0, 1 + 3 + 3);
  ReadAll(quick.get());
  ReadAll(late.get());
  ExpectAccount(log, 3, 0, 0, 4);
  // One byte is retained, and the newest batch: "before" was dropped.
  Append(&log, BatchOf(300, {"d"}), 300);
  EXPECT_EQ(ReadAll(slow.get()).lost, 4u);
  ExpectAccount(log, 3 + 1, 4, 0, 2);
  const ExpiryLog::Point point = quick->Read(1).point;
  ExpectAccount(log, 5, 4, 0, 1);
  late.reset();
  ExpectAccount(log, 5, 4, 1, 0);
  quick.reset();
  Append(&log, BatchOf(400, {"e"}), 400);
  ExpectAccount(log, 5, 4, 1, 1);
  // One that comes back is owed what died meanwhile.
  const auto again = log.Resume(point, 0, [] {});
  ASSERT_TRUE(again.ok());
  ExpectAccount(log, 5, 4, 1, 2);
  ReadAll(again->get());
  slow.reset();
  ExpectAccount(log, 6, 4, 2, 0);
}

// --- Made again.

TEST(ExpiryLogTest, ABatchThatACursorStandsWithinIsRetained) {
  ExpiryLog log(0, kLogMiB, /*first_event=*/1, /*id=*/7);
  log.SetReplaying(true);
  Append(&log, BatchOf(100, {"a", "b", "c"}), 100);
  log.SetReplaying(false);
  // Before, the log had "a" in a batch of its own.
  const auto cursor = log.Resume({7, 2, 0}, 0, [] {});
  ASSERT_TRUE(cursor.ok()) << cursor.status();
  log.Trim(3600 * kSecond);
  EXPECT_THAT(Keys(ReadAll(cursor->get())), ElementsAre("b", "c"));
  log.Trim(3600 * kSecond);
  EXPECT_EQ(log.retained_event(), log.next_event());
}

TEST(ExpiryLogTest, WhileItIsMadeAgainItKeepsWhatItIsNotToldToDrop) {
  ExpiryLog log(kSecond, kLogMiB);
  log.SetReplaying(true);
  Append(&log, BatchOf(100, {"a", "b"}), 100);
  Append(&log, BatchOf(200, {"c"}), 200);
  log.Trim(3600 * kSecond);
  EXPECT_EQ(log.retained_event(), 1u);
  // "a" is retained, and so is its batch.
  log.DropBefore(2);
  EXPECT_EQ(log.retained_event(), 1u);
  log.DropBefore(3);
  EXPECT_EQ(log.retained_event(), 3u);
  log.SetReplaying(false);
  log.Trim(3600 * kSecond);
  EXPECT_EQ(log.retained_event(), log.next_event());
}

// As the original's, whatever the batches are.
TEST(ExpiryLogTest, OnceItIsMadeAgainItBeginsWhereItWasToldTo) {
  ExpiryLog log(kSecond, kLogMiB);
  log.SetReplaying(true);
  Append(&log, BatchOf(100, {"a", "b", "c"}), 100);
  log.DropBefore(3);
  log.SetReplaying(false);
  EXPECT_EQ(log.retained_event(), 3u);
  EXPECT_THAT(Keys(ReadAll(Subscribe(&log, Start::kEarliest).get())),
              ElementsAre("c"));
  EXPECT_EQ(log.bytes(), BatchOf(100, {"c"})->bytes());
}

TEST(ExpiryLogTest, ABatchIsRestoredOnlyBeforeTheOneThatFollowsIt) {
  ExpiryLog log(kSecond, kLogMiB, 10);
  log.SetReplaying(true);
  Append(&log, BatchOf(500, {"k10", "k11"}), 500);
  // It has these.
  log.Restore({10, 500, BatchOf(500, {"k10"})});
  // Others are missing in between.
  log.Restore({7, 300, BatchOf(300, {"k7", "k8"})});
  EXPECT_EQ(log.retained_event(), 10u);
  log.Restore({9, 400, BatchOf(400, {"k9", "k10"})});
  log.Restore({7, 300, BatchOf(300, {"k7", "k8"})});
  log.SetReplaying(false);
  const auto cursor = Subscribe(&log, Start::kEarliest);
  EXPECT_THAT(Keys(ReadAll(cursor.get())),
              ElementsAre("k7", "k8", "k9", "k10", "k11"));
  EXPECT_EQ(log.next_event(), 12u);
  // Each for the rest of its time.
  log.Trim(300 + kSecond);
  EXPECT_EQ(log.retained_event(), 9u);
}

TEST(ExpiryLogTest, TimeThatDoesNotCountLengthensWhatIsRetained) {
  ExpiryLog log(kSecond, kLogMiB);
  Append(&log, BatchOf(100, {"a"}), 100);
  log.SkipTime(5 * kSecond);
  EXPECT_EQ(log.NextTrimUs(0), 100 + 6 * kSecond);
  log.Trim(99 + 6 * kSecond);
  EXPECT_EQ(log.retained_event(), 1u);
  log.Trim(100 + 6 * kSecond);
  EXPECT_EQ(log.retained_event(), 2u);
}

TEST(ExpiryLogTest, WhatIsHeldIsNotTooOldAndIsWanted) {
  ExpiryLog log(0, kLogMiB);
  log.HoldUntil(10 * kSecond);
  EXPECT_TRUE(log.Wanted());
  Append(&log, BatchOf(100, {"a"}), 100);
  log.Trim(10 * kSecond - 1);
  EXPECT_EQ(log.retained_event(), 1u);
  EXPECT_EQ(log.NextTrimUs(0), 10 * kSecond);
  log.Trim(10 * kSecond);
  EXPECT_EQ(log.retained_event(), 2u);
  EXPECT_FALSE(log.Wanted());
}

TEST(ExpiryLogTest, WithoutRetentionOrReadersItKeepsEventsWhileItIsMadeAgain) {
  ExpiryLog log(0, kLogMiB);
  EXPECT_FALSE(log.Wanted());
  log.SetReplaying(true);
  EXPECT_TRUE(log.Wanted());
  Append(&log, BatchOf(100, {"a"}), 100);
  EXPECT_EQ(log.retained_event(), 1u);
}

TEST(ExpiryLogTest, WhileItIsMadeAgainItKeepsOneBatchMoreThanItMay) {
  ExpiryLog log(kSecond, kLogMiB);
  log.SetReplaying(true);
  const size_t third = kLogMiB / 3;
  for (int64_t i = 1; i <= 5; ++i) {
    Append(&log, BatchOf(i * 100, {"k"}, third), i * 100);
  }
  EXPECT_EQ(log.retained_event(), 3u);
  log.SetReplaying(false);
  log.Trim(500);
  EXPECT_EQ(log.retained_event(), 4u);
}

}  // namespace
}  // namespace timecache::server

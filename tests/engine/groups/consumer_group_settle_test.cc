// Settling, and what becomes of what is not settled.

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(GroupSettleTest, ANackIsGivenOutAfterItsDelayAndNotOneTickBefore) {
  GroupHarness harness(WithAckTimeout(kSecond));
  const auto member = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(harness.Nack(1, 1, 5 * kSecond).ok());
  EXPECT_EQ(harness.group().NextDueUs(), harness.now_us() + 5 * kSecond);
  harness.Pass(5 * kSecond - 1);
  EXPECT_THAT(harness.Take(member.get()), IsEmpty());
  EXPECT_EQ(harness.Statistics().backlog, 1u);
  harness.Pass(1);
  harness.Advance();
  EXPECT_EQ(member->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#2"));
}

TEST(GroupSettleTest, NamesTheFieldThatIsOutOfItsRange) {
  GroupHarness harness;
  const auto member = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  EXPECT_EQ(FieldOf(harness.Nack(1, 1, -1)), "delay");
  EXPECT_EQ(FieldOf(harness.Nack(1, 1, kMaxNackDelayUs + 1)), "delay");
  EXPECT_TRUE(harness.Nack(1, 1, kMaxNackDelayUs).ok());
}

TEST(GroupSettleTest, ADeliveryOfAnotherGroupSettlesNothing) {
  GroupHarness harness;
  const auto member = harness.Join();
  harness.Die({"a"});
  const EventChunk chunk = member->Take(harness.now_us());
  ASSERT_THAT(Given(chunk), ElementsAre("a#1"));
  for (const auto action : {SettleAction::kAck, SettleAction::kNack,
                            SettleAction::kExtend, SettleAction::kPutBack}) {
    Settlement other = SettlementOf(chunk.deliveries[0], action);
    other.group_id ^= 1;
    const absl::Status status =
        action == SettleAction::kPutBack
            ? harness.group().BeginPutBack(other, harness.now_us()).status()
            : harness.Settle(other);
    EXPECT_EQ(ReasonOf(status), Reason::kStaleAttempt) << status;
  }
  EXPECT_EQ(harness.Statistics().in_flight, 1u);
}

TEST(GroupSettleTest, WhatIsBeingPutBackIsNotGivenOut) {
  GroupHarness harness(WithAckTimeout(kSecond));
  const auto member = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  const auto delivery = harness.BeginPutBack(1, 1);
  ASSERT_TRUE(delivery.ok()) << delivery.status();
  EXPECT_EQ(delivery->event().key, "a");
  EXPECT_EQ(ReasonOf(harness.BeginPutBack(1, 1).status()),
            Reason::kStaleAttempt);
  harness.Pass(10 * kSecond);
  EXPECT_THAT(harness.Take(member.get()), IsEmpty());
  harness.group().EndPutBack(1, true, harness.now_us());
  EXPECT_EQ(harness.Statistics().put_back, 1u);
  EXPECT_EQ(harness.Statistics().in_flight, 0u);
  EXPECT_THAT(harness.Take(member.get()), IsEmpty());
}

TEST(GroupSettleTest, WhatCannotBePutBackIsHeldOn) {
  GroupHarness harness(WithAckTimeout(10 * kSecond));
  const auto member = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  harness.Pass(kSecond);
  ASSERT_TRUE(harness.BeginPutBack(1, 1).ok());
  harness.group().EndPutBack(1, false, harness.now_us());
  // The time that it had left runs on.
  EXPECT_EQ(harness.group().NextDueUs(), harness.now_us() + 9 * kSecond);
  harness.Pass(9 * kSecond);
  const auto other = harness.Join();
  EXPECT_THAT(harness.Take(other.get()), ElementsAre("a#2"));
}

TEST(GroupSettleTest, AMemberMayLeaveWhileItsEventIsPutBack) {
  GroupHarness harness;
  const auto one = harness.Join();
  const auto two = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(one.get()), ElementsAre("a#1"));
  ASSERT_TRUE(harness.BeginPutBack(1, 1).ok());
  one->Leave();
  EXPECT_THAT(harness.Take(two.get()), IsEmpty());
  harness.group().EndPutBack(1, false, harness.now_us());
  EXPECT_EQ(two->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(two.get()), ElementsAre("a#1"));
  EXPECT_EQ(harness.Statistics().returned, 1u);
}

TEST(GroupSettleTest, AnAckMayComeWhileItsEventIsPutBack) {
  GroupHarness harness;
  const auto member = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  ASSERT_TRUE(harness.BeginPutBack(1, 1).ok());
  EXPECT_TRUE(harness.Ack(1, 1).ok());
  harness.group().EndPutBack(1, true, harness.now_us());
  EXPECT_EQ(harness.Statistics().acked, 1u);
  EXPECT_EQ(harness.Statistics().put_back, 0u);
  EXPECT_EQ(Sum(harness.Statistics()), 1u);
}

TEST(GroupSettleTest, WhatWasGivenOutInVainBecomesADeadLetter) {
  GroupHarness harness(WithAckTimeout(kSecond, 2));
  harness.group().SetDeadLetters(true);
  const auto member = harness.Join();
  harness.Die({"a"});
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  harness.Pass(kSecond);
  EXPECT_THAT(harness.Advance(), IsEmpty());
  const auto other = harness.Join();
  EXPECT_THAT(harness.Take(other.get()), ElementsAre("a#2"));
  harness.Pass(kSecond);
  EXPECT_THAT(harness.Take(member.get()), IsEmpty());
  const std::vector<Delivery> letters = harness.Advance();
  ASSERT_THAT(letters, SizeIs(1));
  EXPECT_EQ(letters[0].event_id, 1u);
  EXPECT_EQ(letters[0].attempt, 2);
  EXPECT_EQ(letters[0].reason, FailureReason::kTimedOut);
  EXPECT_THAT(harness.Advance(), IsEmpty());
  EXPECT_EQ(harness.Statistics().backlog, 2u);
  harness.group().EndDeadLetter(1, DeadLetterOutcome::kPut, harness.now_us());
  EXPECT_EQ(harness.Statistics().dead_lettered, 1u);
  EXPECT_EQ(Sum(harness.Statistics()), 2u);
  // It has made way for the next one of its key.
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
}

TEST(GroupSettleTest, ADeadLetterThatCannotBePutIsTriedAgain) {
  GroupHarness harness(WithAckTimeout(kSecond, 1));
  harness.group().SetDeadLetters(true);
  const auto member = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(harness.Nack(1, 1).ok());
  EXPECT_EQ(harness.group().NextDueUs(), harness.now_us());
  ASSERT_THAT(harness.Advance(), SizeIs(1));
  harness.group().EndDeadLetter(1, DeadLetterOutcome::kTryAgain,
                                harness.now_us());
  EXPECT_EQ(harness.Statistics().dead_letter_failures, 1u);
  EXPECT_EQ(harness.group().NextDueUs(), harness.now_us() + kSecond);
  harness.Pass(kSecond - 1);
  EXPECT_THAT(harness.Advance(), IsEmpty());
  harness.Pass(1);
  ASSERT_THAT(harness.Advance(), SizeIs(1));
  harness.group().EndDeadLetter(1, DeadLetterOutcome::kPut, harness.now_us());
  EXPECT_EQ(harness.Statistics().dead_lettered, 1u);
  EXPECT_EQ(harness.Statistics().backlog, 0u);
}

TEST(GroupSettleTest, ADeadLetterThatNeverFitsIsLostAndMakesWayForItsKey) {
  GroupHarness harness(WithAckTimeout(kSecond, 1));
  harness.group().SetDeadLetters(true);
  const auto member = harness.Join();
  harness.Die({"a"});
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(harness.Nack(1, 1).ok());
  ASSERT_THAT(harness.Advance(), SizeIs(1));
  member->TakeWakes();
  harness.group().EndDeadLetter(1, DeadLetterOutcome::kNeverFits,
                                harness.now_us());
  const GroupStatistics statistics = harness.Statistics();
  EXPECT_EQ(statistics.dead_letters_dropped, 1u);
  EXPECT_EQ(statistics.lost, 1u);
  EXPECT_EQ(statistics.dead_letter_failures, 1u);
  EXPECT_EQ(statistics.dead_lettered, 0u);
  EXPECT_EQ(Sum(statistics), 2u);
  // A member is told of the loss.
  EXPECT_EQ(member->TakeWakes(), 1);
  const EventChunk chunk = member->Take(harness.now_us());
  EXPECT_EQ(chunk.lost, 1u);
  EXPECT_THAT(Given(chunk), ElementsAre("a#1"));
  harness.Pass(kSecond - 1);
  EXPECT_THAT(harness.Advance(), IsEmpty());
}

TEST(GroupSettleTest, AnAckSettlesWhatIsDoomed) {
  GroupHarness harness(WithAckTimeout(kSecond, 1));
  harness.group().SetDeadLetters(true);
  const auto member = harness.Join();
  harness.Die({"a", "b"});
  EXPECT_THAT(harness.Take(member.get()), SizeIs(2));
  harness.Pass(kSecond);
  ASSERT_THAT(harness.Advance(1), SizeIs(1));
  EXPECT_TRUE(harness.Ack(1, 1).ok());
  EXPECT_TRUE(harness.Ack(2, 1).ok());
  harness.group().EndDeadLetter(1, DeadLetterOutcome::kPut, harness.now_us());
  EXPECT_THAT(harness.Advance(), IsEmpty());
  EXPECT_EQ(harness.Statistics().acked, 2u);
  EXPECT_EQ(Sum(harness.Statistics()), 2u);
}

TEST(GroupSettleTest, AReasonComesWithTheNextDeliveryAndNoLater) {
  GroupHarness harness(WithAckTimeout(kSecond));
  const auto member = harness.Join();
  harness.Die({"a"});
  const auto take = [&](TestMember* from) {
    const EventChunk chunk = from->Take(harness.now_us());
    EXPECT_EQ(chunk.deliveries.size(), 1u);
    return chunk.deliveries.at(0);
  };
  const int64_t bytes = harness.Statistics().backlog_bytes;
  Settlement nack = SettlementOf(take(member.get()), SettleAction::kNack);
  nack.reason = "no ink";
  ASSERT_TRUE(harness.Settle(nack).ok());
  EXPECT_EQ(harness.Statistics().backlog_bytes - bytes,
            GroupEvents::kEventBytes + 6);
  const Delivery second = take(member.get());
  ASSERT_NE(second.reason_text, nullptr);
  EXPECT_EQ(*second.reason_text, "no ink");
  harness.Pass(kSecond);
  harness.Advance();
  const auto other = harness.Join();
  EXPECT_EQ(take(other.get()).reason_text, nullptr);
  EXPECT_EQ(harness.Statistics().backlog_bytes - bytes,
            GroupEvents::kEventBytes);
}

TEST(GroupSettleTest, ATerminateMakesADeadLetterAtOnce) {
  GroupHarness harness(WithAckTimeout(kSecond, 5));
  harness.group().SetDeadLetters(true);
  const auto member = harness.Join();
  harness.Die({"a"});
  const EventChunk chunk = member->Take(harness.now_us());
  Settlement terminate =
      SettlementOf(chunk.deliveries.at(0), SettleAction::kTerminate);
  terminate.reason = "no such customer";
  ASSERT_TRUE(harness.Settle(terminate).ok());
  EXPECT_EQ(ReasonOf(harness.Settle(terminate)), Reason::kStaleAttempt);
  EXPECT_THAT(harness.Take(member.get()), IsEmpty());
  const std::vector<Delivery> letters = harness.Advance();
  ASSERT_THAT(letters, SizeIs(1));
  EXPECT_EQ(letters[0].attempt, 1);
  EXPECT_EQ(letters[0].reason, FailureReason::kTerminated);
  ASSERT_NE(letters[0].reason_text, nullptr);
  EXPECT_EQ(*letters[0].reason_text, "no such customer");
  harness.group().EndDeadLetter(1, DeadLetterOutcome::kPut, harness.now_us());
  EXPECT_EQ(harness.Statistics().dead_lettered, 1u);
  EXPECT_EQ(harness.Statistics().terminated, 0u);
  EXPECT_EQ(Sum(harness.Statistics()), 1u);
}

TEST(GroupSettleTest, WithoutAPlaceForLettersATerminateSettles) {
  GroupHarness harness;
  const auto member = harness.Join();
  harness.Die({"a", "b"});
  const EventChunk chunk = member->Take(harness.now_us());
  ASSERT_THAT(chunk.deliveries, SizeIs(2));
  EXPECT_TRUE(
      harness
          .Settle(SettlementOf(chunk.deliveries[0], SettleAction::kTerminate))
          .ok());
  EXPECT_EQ(harness.Statistics().terminated, 1u);
  // The place goes away meanwhile.
  harness.group().SetDeadLetters(true);
  EXPECT_TRUE(
      harness
          .Settle(SettlementOf(chunk.deliveries[1], SettleAction::kTerminate))
          .ok());
  harness.group().SetDeadLetters(false);
  EXPECT_THAT(harness.Advance(), IsEmpty());
  EXPECT_EQ(harness.Statistics().terminated, 2u);
  EXPECT_EQ(Sum(harness.Statistics()), 2u);
}

TEST(GroupSettleTest, AnAttemptInVainWaitsAsTheGroupSays) {
  GroupOptions options = WithAckTimeout(kSecond);
  options.retry_delay_us = 2 * kSecond;
  options.max_retry_delay_us = 5 * kSecond;
  GroupHarness harness(options);
  const auto member = harness.Join();
  const auto other = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(harness.Settle({1, 1, SettleAction::kNack}).ok());
  harness.Pass(2 * kSecond - 1);
  EXPECT_THAT(harness.Take(other.get()), IsEmpty());
  harness.Pass(1);
  EXPECT_THAT(harness.Take(other.get()), ElementsAre("a#2"));
  // It times out.
  harness.Pass(5 * kSecond - 1);
  EXPECT_THAT(harness.Take(member.get()), IsEmpty());
  harness.Advance();
  harness.Pass(4 * kSecond);
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#3"));
  EXPECT_TRUE(harness.Settle({1, 3, SettleAction::kNack}).ok());
  EXPECT_EQ(harness.group().NextDueUs(), harness.now_us() + 5 * kSecond);
  harness.Pass(5 * kSecond);
  EXPECT_THAT(harness.Take(other.get()), IsEmpty());
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#4"));
  // What the member says comes first.
  EXPECT_TRUE(harness.Nack(1, 4, 0).ok());
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#5"));
}

TEST(GroupSettleTest, DelaysAreShortenedByNoMoreThanTheJitter) {
  GroupOptions options;
  options.retry_delay_us = kSecond;
  options.retry_multiplier = 10;
  options.max_retry_delay_us = 100 * kSecond;
  options.retry_jitter_percent = 20;
  std::set<int64_t> seen;
  for (uint64_t event = 1; event <= 1'000; ++event) {
    int64_t most_us = kSecond;
    for (const int attempt : {1, 2, 3, 4, 1'000'000}) {
      const int64_t us = RetryDelayUs(options, event, attempt);
      EXPECT_LE(us, most_us);
      EXPECT_GE(us, most_us * 8 / 10);
      seen.insert(us);
      most_us = std::min(10 * most_us, 100 * kSecond);
    }
  }
  EXPECT_GT(seen.size(), 4'000u);
  options.retry_delay_us = 0;
  EXPECT_EQ(RetryDelayUs(options, 1, 3), 0);
}

TEST(GroupSettleTest, APausedGroupDeliversNothingUntilItGoesOn) {
  GroupOptions options = WithAckTimeout(kSecond);
  GroupHarness harness(options);
  const auto member = harness.Join();
  const auto other = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  options.paused = true;
  harness.group().SetOptions(options);
  harness.Die({"b"});
  EXPECT_THAT(harness.Take(other.get()), IsEmpty());
  // What is held times out.
  harness.Pass(kSecond);
  harness.Advance();
  EXPECT_EQ(harness.Statistics().timed_out, 1u);
  EXPECT_THAT(harness.Take(other.get()), IsEmpty());
  other->TakeWakes();
  options.paused = false;
  harness.group().SetOptions(options);
  EXPECT_EQ(other->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(other.get()), ElementsAre("a#2"));
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("b#1"));
}

TEST(GroupSettleTest, GivesTheDeadLettersThatThereIsRoomFor) {
  GroupHarness harness(WithAckTimeout(kSecond, 1));
  harness.group().SetDeadLetters(true);
  const auto member = harness.Join();
  harness.Die({"a", "b", "c"});
  EXPECT_THAT(harness.Take(member.get()), SizeIs(3));
  harness.Pass(kSecond);
  std::vector<Delivery> letters;
  DeadLetterBudget room = {2};
  EXPECT_TRUE(harness.group().Advance(harness.now_us(), &room, &letters));
  EXPECT_THAT(letters, SizeIs(2));
  EXPECT_TRUE(harness.group().Advance(harness.now_us(), &room, &letters));
  room = {1};
  EXPECT_FALSE(harness.group().Advance(harness.now_us(), &room, &letters));
  EXPECT_THAT(letters, SizeIs(3));
}

TEST(GroupSettleTest, GivesTheDeadLettersWhoseBytesThereIsRoomFor) {
  GroupHarness harness(WithAckTimeout(kSecond, 1));
  harness.group().SetDeadLetters(true);
  const auto member = harness.Join();
  harness.Die({"a", "b", "c"});
  EXPECT_THAT(harness.Take(member.get()), SizeIs(3));
  harness.Pass(kSecond);
  std::vector<Delivery> letters;
  // One takes all the room, however large it is.
  DeadLetterBudget room = {10, 1};
  EXPECT_TRUE(harness.group().Advance(harness.now_us(), &room, &letters));
  EXPECT_THAT(letters, SizeIs(1));
  EXPECT_EQ(room.events, 9);
  EXPECT_LE(room.bytes, 0);
  room = {10, 1 << 20};
  EXPECT_FALSE(harness.group().Advance(harness.now_us(), &room, &letters));
  EXPECT_THAT(letters, SizeIs(3));
}

}  // namespace
}  // namespace timecache::server

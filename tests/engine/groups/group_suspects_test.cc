// What the end of a member's stream means for the events that it held.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/groups/group_ledger.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GroupReturnTest : public ::testing::Test {
 protected:
  GroupReturnTest() : harness_(WithAckTimeout(600 * kSecond, 2)) {
    harness_.group().SetDeadLetters(true);
  }

  // A new member gets what it may; what it got.
  std::vector<std::string> TakeAndVanish() {
    const auto member = harness_.Join();
    const auto given = harness_.Take(member.get());
    member->Vanish(harness_.now_us());
    return given;
  }
  void TakeAndVanish(int times) {
    for (int i = 0; i < times; ++i) TakeAndVanish();
  }
  GroupStatistics Statistics() const { return harness_.Statistics(); }

  GroupHarness harness_;
};

TEST_F(GroupReturnTest, ANackOfTheLastAttemptIsADeadLetterAtOnce) {
  harness_.Die({"a"});
  const auto member = harness_.Join();
  EXPECT_THAT(harness_.Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(harness_.Nack(1, 1, kSecond).ok());
  EXPECT_THAT(harness_.Advance(), IsEmpty());
  harness_.Pass(kSecond);
  harness_.Advance();
  EXPECT_THAT(harness_.Take(member.get()), ElementsAre("a#2"));
  EXPECT_TRUE(harness_.Nack(1, 2, kMaxNackDelayUs).ok());
  const std::vector<Delivery> doomed = harness_.Advance();
  ASSERT_THAT(doomed, SizeIs(1));
  EXPECT_EQ(doomed[0].attempt, 2);
  EXPECT_EQ(doomed[0].reason, FailureReason::kNacked);
}

TEST_F(GroupReturnTest, WhatEndsItsMembersAgainAndAgainWaitsLongerEachTime) {
  harness_.Die({"bomb"});
  TakeAndVanish(GroupLedger::kSuspectReturns);
  EXPECT_EQ(Statistics().suspects, 1u);
  for (int64_t pause_us = kSecond; pause_us < 2'000 * kSecond; pause_us *= 2) {
    const int64_t waits_us =
        std::min(pause_us, GroupLedger::kMaxSuspectPauseUs);
    harness_.Pass(waits_us - 1);
    harness_.Advance();
    EXPECT_THAT(TakeAndVanish(), IsEmpty());
    harness_.Pass(1);
    harness_.Advance();
    EXPECT_THAT(TakeAndVanish(), ElementsAre("bomb#1"));
  }
  const auto suspect = harness_.group().TakeSuspect();
  ASSERT_TRUE(suspect.has_value());
  EXPECT_EQ(suspect->key, "bomb");
  EXPECT_EQ(static_cast<uint64_t>(suspect->returns), Statistics().returned);
  EXPECT_FALSE(harness_.group().TakeSuspect().has_value());
  // A worker that takes it, and fails, is no more than that.
  harness_.Pass(GroupLedger::kMaxSuspectPauseUs);
  harness_.Advance();
  const auto member = harness_.Join();
  const EventChunk chunk = member->Take(harness_.now_us());
  ASSERT_THAT(Given(chunk), ElementsAre("bomb#1"));
  EXPECT_TRUE(
      harness_.Settle(SettlementOf(chunk.deliveries[0], SettleAction::kNack))
          .ok());
  EXPECT_EQ(Statistics().suspects, 0u);
  EXPECT_THAT(harness_.Take(member.get()), ElementsAre("bomb#2"));
}

TEST_F(GroupReturnTest, WhatWasWithASuspectIsTriedAloneAndThenMoreAtATime) {
  harness_.DieMany("k", 15);
  TakeAndVanish(GroupLedger::kSuspectReturns);
  EXPECT_EQ(Statistics().suspects, 15u);
  harness_.Pass(kSecond);
  harness_.Advance();
  const auto member = harness_.Join();
  for (const size_t at_a_time : {1u, 2u, 4u, 8u}) {
    const EventChunk chunk = member->Take(harness_.now_us());
    EXPECT_THAT(chunk.deliveries, SizeIs(at_a_time));
    harness_.AckAll(chunk);
  }
  EXPECT_EQ(Statistics().acked, 15u);
  EXPECT_EQ(Statistics().suspects, 0u);
}

TEST_F(GroupReturnTest, AnExtensionShowsThatASuspectDoesNotKill) {
  harness_.DieMany("k", 3);
  TakeAndVanish(GroupLedger::kSuspectReturns);
  harness_.Pass(kSecond);
  harness_.Advance();
  const auto member = harness_.Join();
  const EventChunk chunk = member->Take(harness_.now_us());
  ASSERT_THAT(Given(chunk), ElementsAre("k0#1"));
  EXPECT_THAT(harness_.Take(member.get()), IsEmpty());
  member->TakeWakes();
  EXPECT_TRUE(
      harness_.Settle(SettlementOf(chunk.deliveries[0], SettleAction::kExtend))
          .ok());
  EXPECT_EQ(member->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(member.get()), SizeIs(2));
}

TEST_F(GroupReturnTest, GoodEventsBesideASuspectAreNotSuspected) {
  harness_.Die({"bomb"});
  TakeAndVanish(GroupLedger::kSuspectReturns);
  harness_.DieMany("good", 5);
  for (int i = 0; i < 5; ++i) {
    harness_.Pass(GroupLedger::kMaxSuspectPauseUs);
    harness_.Advance();
    EXPECT_THAT(TakeAndVanish(), SizeIs(6));
  }
  EXPECT_EQ(Statistics().suspects, 1u);
  EXPECT_THAT(TakeAndVanish(), SizeIs(5));
}

}  // namespace
}  // namespace timecache::server

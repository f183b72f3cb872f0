// Who is given what a member let time out or NACKed.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kAckTimeoutUs = kSecond;

class GroupRedeliveryTest : public ::testing::Test {
 protected:
  GroupRedeliveryTest() : harness_(WithAckTimeout(kAckTimeoutUs)) {
    harness_.group().SetDeadLetters(true);
  }

  // A member that waits for events.
  std::unique_ptr<TestMember> JoinIdle(int max_in_flight = 1000) {
    auto member = harness_.Join(max_in_flight);
    EXPECT_THAT(harness_.Take(member.get()), IsEmpty());
    return member;
  }

  // `member` takes all that it is given, and settles none of it.
  int TakeAll(TestMember* member) {
    int taken = 0;
    for (bool more = true; more;) {
      const EventChunk chunk = member->Take(harness_.now_us());
      taken += static_cast<int>(chunk.deliveries.size());
      more = chunk.more;
    }
    return taken;
  }

  // `member` settles all that it is given, until there is nothing more.
  int Work(TestMember* member) {
    int settled = 0;
    for (;;) {
      const EventChunk chunk = member->Take(harness_.now_us());
      if (chunk.deliveries.empty() && !chunk.more) return settled;
      harness_.AckAll(chunk);
      settled += static_cast<int>(chunk.deliveries.size());
    }
  }

  // The ack_timeout passes; returns how many become dead letters.
  size_t TimeOut() {
    harness_.Pass(kAckTimeoutUs);
    return harness_.Advance().size();
  }

  GroupStatistics Statistics() const { return harness_.Statistics(); }

  GroupHarness harness_;
};

TEST_F(GroupRedeliveryTest, AHungMemberLeavesItsEventsToOneThatSettles) {
  const auto hung = JoinIdle();
  const auto idle = JoinIdle();
  harness_.DieMany("k", 100);
  for (int second = 0; second < 20; ++second) {
    harness_.Take(hung.get());
    Work(idle.get());
    ASSERT_EQ(TimeOut(), 0u) << "dead letters after " << second << " s";
  }
  EXPECT_EQ(Statistics().acked, 100u);
  EXPECT_EQ(Statistics().redelivered, 50u);
  EXPECT_EQ(Statistics().unresponsive_members, 1);
}

TEST_F(GroupRedeliveryTest, TwoHungMembersLeaveTheirEventsToTheThird) {
  const auto one = JoinIdle();
  const auto two = JoinIdle();
  const auto idle = JoinIdle();
  harness_.DieMany("k", 99);
  for (int second = 0; second < 20; ++second) {
    harness_.Take(one.get());
    harness_.Take(two.get());
    Work(idle.get());
    ASSERT_EQ(TimeOut(), 0u) << "dead letters after " << second << " s";
  }
  EXPECT_EQ(Statistics().acked, 99u);
  EXPECT_EQ(Statistics().redelivered, 66u);
}

TEST_F(GroupRedeliveryTest, OneThatTakesOneAtATimeSettlesAllOfAHungMembers) {
  const auto hung = JoinIdle();
  const auto idle = JoinIdle(1);
  harness_.DieMany("k", 100);
  for (int second = 0; second < 20; ++second) {
    TakeAll(hung.get());
    Work(idle.get());
    ASSERT_EQ(TimeOut(), 0u) << "dead letters after " << second << " s";
  }
  EXPECT_EQ(Statistics().acked, 100u);
  EXPECT_EQ(Statistics().redelivered, 100u);
}

TEST_F(GroupRedeliveryTest, WhatTimedOutWakesTheOtherAndNotTheHungMember) {
  const auto hung = JoinIdle();
  harness_.DieMany("k", 10);
  TakeAll(hung.get());
  const auto idle = JoinIdle();
  hung->TakeWakes();
  EXPECT_EQ(TimeOut(), 0u);
  EXPECT_EQ(hung->TakeWakes(), 0);
  EXPECT_EQ(idle->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(hung.get()), IsEmpty());
  EXPECT_THAT(harness_.Take(idle.get()), SizeIs(10));
}

TEST_F(GroupRedeliveryTest, AHungMemberIsGivenOneEventAtATimeUntilItSettles) {
  const auto hung = JoinIdle();
  const auto idle = JoinIdle();
  harness_.DieMany("k", 100);
  harness_.Take(hung.get());
  Work(idle.get());
  TimeOut();
  Work(idle.get());
  for (int second = 0; second < 3; ++second) {
    harness_.DieMany(absl::StrCat("s", second, "-"), 20);
    EXPECT_EQ(TakeAll(hung.get()), 1);
    Work(idle.get());
    EXPECT_EQ(TimeOut(), 0u);
    Work(idle.get());
  }
  idle->Leave();
  // Each event that it settles is one more that it may hold.
  harness_.DieMany("more", 15);
  for (const size_t may_hold : {1u, 2u, 4u, 8u}) {
    const EventChunk chunk = hung->Take(harness_.now_us());
    EXPECT_THAT(chunk.deliveries, SizeIs(may_hold));
    EXPECT_THAT(harness_.Take(hung.get()), IsEmpty());
    harness_.AckAll(chunk);
    EXPECT_EQ(Statistics().unresponsive_members, 0);
  }
  EXPECT_EQ(Statistics().backlog, 0u);
}

// The timer of one event of many runs out, and halves what it may hold.
TEST_F(GroupRedeliveryTest, AMemberThatIsSlowNowAndThenIsGivenLess) {
  const auto member = JoinIdle(8);
  harness_.Die({"slow"});
  EXPECT_EQ(TakeAll(member.get()), 1);
  harness_.Pass(kAckTimeoutUs - 1);
  harness_.DieMany("k", 20);
  const EventChunk chunk = member->Take(harness_.now_us());
  EXPECT_THAT(chunk.deliveries, SizeIs(7));
  harness_.Pass(1);
  harness_.Advance();
  EXPECT_THAT(harness_.Take(member.get()), IsEmpty());
  harness_.AckAll(chunk);
  EXPECT_EQ(TakeAll(member.get()), 8);
}

// What it does is done twice, but it goes on.
TEST_F(GroupRedeliveryTest, WhatIsSettledLateCountsForWhoWasGivenItFirst) {
  const auto slow = JoinIdle();
  harness_.DieMany("k", 100);
  const EventChunk chunk = slow->Take(harness_.now_us());
  TimeOut();
  EXPECT_EQ(Statistics().unresponsive_members, 1);
  EXPECT_EQ(TakeAll(slow.get()), 0);
  harness_.AckAll(chunk);
  EXPECT_EQ(Statistics().unresponsive_members, 0);
  harness_.DieMany("more", 99);
  EXPECT_EQ(TakeAll(slow.get()), 99);
}

TEST_F(GroupRedeliveryTest, TheOnlyMemberIsGivenAgainWhatItNacked) {
  const auto member = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(harness_.Nack(1, 1).ok());
  EXPECT_THAT(harness_.Take(member.get()), ElementsAre("a#2"));
}

// It may still be busy with it. That nobody else takes it shows in the lag.
TEST_F(GroupRedeliveryTest, TheOnlyMemberIsNotGivenAgainWhatItLetTimeOut) {
  auto hung = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(hung.get()), ElementsAre("a#1"));
  hung->TakeWakes();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(TimeOut(), 0u);
    EXPECT_EQ(hung->TakeWakes(), 0);
    EXPECT_THAT(harness_.Take(hung.get()), IsEmpty());
  }
  EXPECT_EQ(Statistics().timed_out, 1u);
  EXPECT_EQ(Statistics().backlog, 1u);
  EXPECT_EQ(Statistics().unresponsive_members, 1);
  EXPECT_LT(Statistics().oldest_unsettled_us, harness_.now_us());
  EXPECT_EQ(harness_.group().NextDueUs(), kNeverUs);
  // Events that are fresh to it still come, one at a time.
  harness_.Die({"b"});
  EXPECT_THAT(harness_.Take(hung.get()), ElementsAre("b#1"));
  const auto other = harness_.Join();
  EXPECT_THAT(harness_.Take(other.get()), ElementsAre("a#2"));
  hung->Leave();
  EXPECT_THAT(harness_.Take(other.get()), ElementsAre("b#1"));
}

TEST_F(GroupRedeliveryTest, WhatTheOnlyMemberLetTimeOutIsForOneThatJoins) {
  const auto hung = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(hung.get()), ElementsAre("a#1"));
  TimeOut();
  const auto other = harness_.Join();
  EXPECT_THAT(harness_.Take(other.get()), ElementsAre("a#2"));
  // The first one may still end it.
  EXPECT_TRUE(harness_.Ack(1, 1).ok());
  EXPECT_EQ(Statistics().acked, 1u);
}

TEST_F(GroupRedeliveryTest, ALateAnswerMakesAMemberFitForTheEventAgain) {
  const auto member = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(member.get()), ElementsAre("a#1"));
  TimeOut();
  EXPECT_EQ(ReasonOf(harness_.Extend(1, 1)), Reason::kStaleAttempt);
  EXPECT_THAT(harness_.Take(member.get()), IsEmpty());
  member->TakeWakes();
  EXPECT_EQ(ReasonOf(harness_.Nack(1, 1)), Reason::kStaleAttempt);
  EXPECT_EQ(member->TakeWakes(), 1);
  EXPECT_EQ(Statistics().unresponsive_members, 0);
  EXPECT_THAT(harness_.Take(member.get()), ElementsAre("a#2"));
}

// Each of them has it once.
TEST_F(GroupRedeliveryTest, AmongHungMembersEventsGoOnToTheOther) {
  const auto one = JoinIdle();
  const auto two = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#1"));
  harness_.Die({"b"});
  EXPECT_THAT(harness_.Take(two.get()), ElementsAre("b#1"));
  EXPECT_EQ(TimeOut(), 0u);
  EXPECT_EQ(Statistics().unresponsive_members, 2);
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("b#2"));
  EXPECT_THAT(harness_.Take(two.get()), ElementsAre("a#2"));
  EXPECT_EQ(TimeOut(), 0u);
  EXPECT_THAT(harness_.Take(one.get()), IsEmpty());
  EXPECT_THAT(harness_.Take(two.get()), IsEmpty());
  for (int attempt = 3; attempt <= 5; ++attempt) {
    const auto next = harness_.Join();
    EXPECT_THAT(
        harness_.Take(next.get()),
        ElementsAre(absl::StrCat("a#", attempt), absl::StrCat("b#", attempt)));
    EXPECT_EQ(TimeOut(), attempt == 5 ? 2u : 0u);
  }
  EXPECT_EQ(Statistics().timed_out, 10u);
}

// A responsive member that is busy with it does not keep it from another.
TEST_F(GroupRedeliveryTest, WhatAResponsiveMemberIsLateWithGoesToAnyOther) {
  const auto busy = JoinIdle();
  const auto slow = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(busy.get()), ElementsAre("a#1"));
  harness_.Die({"b"});
  EXPECT_THAT(harness_.Take(slow.get()), ElementsAre("b#1"));
  TimeOut();
  EXPECT_THAT(harness_.Take(busy.get()), ElementsAre("b#2"));
  EXPECT_TRUE(harness_.Ack(2, 2).ok());
  EXPECT_EQ(Statistics().unresponsive_members, 1);
  EXPECT_THAT(harness_.Take(slow.get()), ElementsAre("a#2"));
}

TEST_F(GroupRedeliveryTest, ANackedEventOfWhichAllOthersAreLateComesBack) {
  const auto late = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(late.get()), ElementsAre("a#1"));
  TimeOut();
  const auto other = harness_.Join();
  EXPECT_THAT(harness_.Take(other.get()), ElementsAre("a#2"));
  EXPECT_TRUE(harness_.Nack(1, 2).ok());
  EXPECT_THAT(harness_.Take(late.get()), IsEmpty());
  EXPECT_THAT(harness_.Take(other.get()), ElementsAre("a#3"));
}

TEST_F(GroupRedeliveryTest, ANackedEventGoesToAnother) {
  const auto one = JoinIdle();
  harness_.Die({"a", "b"});
  EXPECT_THAT(harness_.Take(one.get()), SizeIs(2));
  const auto two = JoinIdle();
  one->TakeWakes();
  EXPECT_TRUE(harness_.Nack(1, 1).ok());
  EXPECT_TRUE(harness_.Nack(2, 1, kSecond / 2).ok());
  EXPECT_EQ(one->TakeWakes(), 0);
  EXPECT_EQ(two->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(one.get()), IsEmpty());
  EXPECT_THAT(harness_.Take(two.get()), ElementsAre("a#2"));
  harness_.Pass(kSecond / 2);
  harness_.Advance();
  EXPECT_EQ(one->TakeWakes(), 0);
  EXPECT_EQ(two->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(one.get()), IsEmpty());
  EXPECT_THAT(harness_.Take(two.get()), ElementsAre("b#2"));
  // A NACK is an answer.
  EXPECT_EQ(Statistics().unresponsive_members, 0);
}

// A worker that NACKs all at once would else have made a dead letter of it
// before the other comes to it.
TEST_F(GroupRedeliveryTest, ANackedEventWaitsForAnotherThatIsBusy) {
  const auto one = JoinIdle();
  const auto busy = JoinIdle(1);
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#1"));
  harness_.Die({"b"});
  EXPECT_THAT(harness_.Take(busy.get()), ElementsAre("b#1"));
  one->TakeWakes();
  busy->TakeWakes();
  EXPECT_TRUE(harness_.Nack(1, 1).ok());
  EXPECT_EQ(one->TakeWakes(), 0);
  EXPECT_THAT(harness_.Take(one.get()), IsEmpty());
  EXPECT_TRUE(harness_.Ack(2, 1).ok());
  EXPECT_EQ(busy->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(busy.get()), ElementsAre("a#2"));
}

// But no longer than that one has to settle.
TEST_F(GroupRedeliveryTest, ANackedEventDoesNotWaitForOneThatHangs) {
  const auto one = JoinIdle();
  const auto hung = JoinIdle(1);
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#1"));
  harness_.Die({"b"});
  EXPECT_THAT(harness_.Take(hung.get()), ElementsAre("b#1"));
  EXPECT_TRUE(harness_.Nack(1, 1).ok());
  EXPECT_THAT(harness_.Take(one.get()), IsEmpty());
  EXPECT_EQ(TimeOut(), 0u);
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#2", "b#2"));
}

TEST_F(GroupRedeliveryTest, WhatFailedDoesNotWaitForAMemberThatIsStuck) {
  const auto one = JoinIdle();
  const auto stuck = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#1"));
  one->TakeWakes();
  EXPECT_TRUE(harness_.Nack(1, 1).ok());
  EXPECT_EQ(stuck->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(one.get()), IsEmpty());
  EXPECT_EQ(harness_.group().NextDueUs(),
            harness_.now_us() + MemberScheduler::kPatienceUs);
  harness_.Pass(MemberScheduler::kPatienceUs);
  harness_.Advance();
  EXPECT_EQ(one->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#2"));
}

TEST_F(GroupRedeliveryTest, WhatFailedDoesNotWaitForAMemberThatLeft) {
  const auto one = JoinIdle();
  const auto busy = JoinIdle(1);
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#1"));
  harness_.Die({"b"});
  EXPECT_THAT(harness_.Take(busy.get()), ElementsAre("b#1"));
  EXPECT_TRUE(harness_.Nack(1, 1).ok());
  EXPECT_THAT(harness_.Take(one.get()), IsEmpty());
  one->TakeWakes();
  busy->Leave();
  EXPECT_EQ(one->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#2", "b#1"));
}

TEST_F(GroupRedeliveryTest, WhatALeaverFailedIsForAllOthers) {
  auto one = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#1"));
  EXPECT_TRUE(harness_.Nack(1, 1, kSecond / 2).ok());
  one->Leave();
  const auto two = JoinIdle();
  harness_.Pass(kSecond / 2);
  harness_.Advance();
  EXPECT_EQ(two->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(two.get()), ElementsAre("a#2"));
}

TEST_F(GroupRedeliveryTest, EventsBehindOneOfTheirKeyFollowItToTheOther) {
  const auto hung = JoinIdle();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(hung.get()), ElementsAre("a#1"));
  const auto idle = JoinIdle();
  harness_.Die({"a", "b"});
  EXPECT_EQ(Work(idle.get()), 1);
  TimeOut();
  EXPECT_THAT(harness_.Take(hung.get()), IsEmpty());
  EXPECT_THAT(harness_.Take(idle.get()), ElementsAre("a#2"));
  EXPECT_TRUE(harness_.Ack(1, 2).ok());
  EXPECT_THAT(harness_.Take(idle.get()), ElementsAre("a#1"));
}

// Events that several members failed lie between those that none did.
TEST_F(GroupRedeliveryTest, TheOldestThatIsForAMemberComesFirst) {
  const auto one = JoinIdle();
  const auto two = JoinIdle();
  harness_.Die({"a", "b", "c", "d"});
  EXPECT_THAT(harness_.Take(one.get()), ElementsAre("a#1", "b#1"));
  EXPECT_THAT(harness_.Take(two.get()), ElementsAre("c#1", "d#1"));
  harness_.Die({"e"});
  for (const int event : {1, 2, 3, 4}) {
    EXPECT_TRUE(harness_.Nack(static_cast<uint64_t>(event), 1).ok());
  }
  EXPECT_THAT(harness_.Take(one.get(), 1), ElementsAre("c#2"));
  EXPECT_THAT(harness_.Take(two.get(), 1), ElementsAre("a#2"));
  EXPECT_THAT(harness_.Take(one.get(), 1), ElementsAre("d#2"));
  EXPECT_THAT(harness_.Take(one.get(), 1), ElementsAre("e#1"));
  EXPECT_THAT(harness_.Take(one.get(), 1), IsEmpty());
  EXPECT_THAT(harness_.Take(two.get(), 1), ElementsAre("b#2"));
}

}  // namespace
}  // namespace timecache::server

// Who is given what a member let time out or NACKed, where the model of delivery
// says less.
#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

  // The ack_timeout passes; returns how many become dead letters.
  size_t TimeOut() {
    harness_.Pass(kAckTimeoutUs);
    return harness_.Advance().size();
  }

  GroupHarness harness_;
};

// Whatever else a member that hangs is given, none of it becomes a dead letter.
TEST_F(GroupRedeliveryTest, HungMembersLeaveTheirEventsToOneThatSettles) {
  struct Row {
    size_t hung;
    bool takes_all;
    // Of the one that settles.
    int max_in_flight;
    uint64_t redelivered;
  };
  for (const Row& row : {Row{1, false, 1000, 50}, Row{2, false, 1000, 66},
                         Row{1, true, 1, 100}}) {
    SCOPED_TRACE(row.redelivered);
    GroupHarness harness(WithAckTimeout(kAckTimeoutUs));
    harness.group().SetDeadLetters(true);
    const int events = row.hung == 2 ? 99 : 100;
    std::vector<std::unique_ptr<TestMember>> members;
    for (size_t i = 0; i <= row.hung; ++i) {
      members.push_back(harness.Join(i < row.hung ? 1000 : row.max_in_flight));
      EXPECT_THAT(harness.Take(members.back().get()), IsEmpty());
    }
    harness.DieMany("k", events);
    for (int second = 0; second < 20; ++second) {
      for (size_t i = 0; i < row.hung; ++i) {
        while (members[i]->Take(harness.now_us()).more && row.takes_all) {
        }
      }
      while (true) {
        const EventChunk chunk = members.back()->Take(harness.now_us());
        if (chunk.deliveries.empty() && !chunk.more) break;
        harness.AckAll(chunk);
      }
      harness.Pass(kAckTimeoutUs);
      ASSERT_THAT(harness.Advance(), IsEmpty()) << second << " s";
    }
    EXPECT_EQ(harness.Statistics().acked, static_cast<uint64_t>(events));
    EXPECT_EQ(harness.Statistics().redelivered, row.redelivered);
  }
}

TEST_F(GroupRedeliveryTest, WhatTimedOutWakesTheOtherAndNotTheHungMember) {
  const auto hung = JoinIdle();
  harness_.DieMany("k", 10);
  EXPECT_THAT(harness_.Take(hung.get()), SizeIs(10));
  const auto idle = JoinIdle();
  hung->TakeWakes();
  EXPECT_EQ(TimeOut(), 0u);
  EXPECT_EQ(hung->TakeWakes(), 0);
  EXPECT_EQ(idle->TakeWakes(), 1);
  EXPECT_THAT(harness_.Take(hung.get()), IsEmpty());
  EXPECT_THAT(harness_.Take(idle.get()), SizeIs(10));
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
  EXPECT_EQ(harness_.Statistics().timed_out, 1u);
  EXPECT_EQ(harness_.Statistics().backlog, 1u);
  EXPECT_EQ(harness_.Statistics().unresponsive_members, 1);
  EXPECT_LT(harness_.Statistics().oldest_unsettled_us, harness_.now_us());
  EXPECT_EQ(harness_.group().NextDueUs(), kNeverUs);
  // Events that are fresh to it still come, one at a time.
  harness_.Die({"b"});
  EXPECT_THAT(harness_.Take(hung.get()), ElementsAre("b#1"));
  const auto other = harness_.Join();
  EXPECT_THAT(harness_.Take(other.get()), ElementsAre("a#2"));
  hung->Leave();
  EXPECT_THAT(harness_.Take(other.get()), ElementsAre("b#1"));
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

}  // namespace
}  // namespace timecache::server

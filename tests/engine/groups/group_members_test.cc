// A single active member, and what all members have had.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/groups/consumer_group.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

GroupOptions SingleActive(bool is) {
  GroupOptions options;
  options.single_active = is;
  return options;
}

// What a member gives back in one partition, another one may have taken at once.
TEST(MemberOfSeveralPartitionsTest, IsWokenWhereOthersHaveTakenItsRoom) {
  GroupHarness harness;
  std::shared_ptr<InFlightLimit> limit;
  limit = std::make_shared<InFlightLimit>(1, [&] { limit->Add(); });
  const auto member = harness.Join(limit);
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(limit->AwaitRoom());
  member->TakeWakes();
  ASSERT_TRUE(harness.Nack(1, 1).ok());
  EXPECT_EQ(limit->held(), 1);
  EXPECT_EQ(member->TakeWakes(), 1);
  const EventChunk full = member->Take(harness.now_us());
  EXPECT_THAT(full.deliveries, IsEmpty());
  EXPECT_TRUE(full.at_limit);
  limit->Remove();
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#2"));
}

TEST(SingleActiveTest, TheOldestGetsAllAndThenTheNextOne) {
  GroupHarness harness(SingleActive(true));
  const auto first = harness.Join();
  const auto second = harness.Join();
  const auto third = harness.Join();
  for (TestMember* member : {third.get(), second.get(), first.get()}) {
    EXPECT_THAT(harness.Take(member), IsEmpty());
  }
  harness.Die({"a", "b"});
  EXPECT_EQ(first->TakeWakes(), 1);
  EXPECT_EQ(second->TakeWakes() + third->TakeWakes(), 0);
  EXPECT_THAT(harness.Take(second.get()), IsEmpty());
  EXPECT_THAT(harness.Take(first.get()), ElementsAre("a#1", "b#1"));
  harness.Die({"c"});
  third->Leave();
  first->Leave();
  EXPECT_EQ(second->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(second.get()), ElementsAre("a#1", "b#1", "c#1"));
}

TEST(SingleActiveTest, TheNextOneBeginsOnceAllIsReturned) {
  GroupHarness harness(SingleActive(true));
  const auto first = harness.Join(10'000);
  const auto second = harness.Join(10'000);
  EXPECT_THAT(harness.Take(second.get()), IsEmpty());
  harness.DieMany("k", 3'000);
  size_t taken = 0;
  for (bool more = true; more;) {
    const EventChunk chunk = first->Take(harness.now_us(), 10'000);
    taken += chunk.deliveries.size();
    more = chunk.more;
  }
  ASSERT_EQ(taken, 3'000u);
  harness.Die({"late"});
  first->Leave();
  EXPECT_EQ(second->TakeWakes(), 1);
  uint64_t last = 0;
  for (bool more = true; more;) {
    const EventChunk chunk = second->Take(harness.now_us(), 10'000);
    for (const Delivery& delivery : chunk.deliveries) {
      EXPECT_EQ(delivery.event_id, ++last);
    }
    more = chunk.more;
  }
  EXPECT_EQ(last, 3'001u);
}

TEST(SingleActiveTest, WhatItNacksComesBackToIt) {
  GroupHarness harness(SingleActive(true));
  const auto first = harness.Join();
  const auto second = harness.Join();
  EXPECT_THAT(harness.Take(second.get()), IsEmpty());
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(first.get()), ElementsAre("a#1"));
  ASSERT_TRUE(harness.Nack(1, 1).ok());
  EXPECT_EQ(second->TakeWakes(), 0);
  EXPECT_EQ(first->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(first.get()), ElementsAre("a#2"));
}

TEST(SingleActiveTest, IsTurnedOnAndOffInUse) {
  GroupHarness harness;
  const auto first = harness.Join(1);
  const auto second = harness.Join(1);
  EXPECT_THAT(harness.Take(first.get()), IsEmpty());
  EXPECT_THAT(harness.Take(second.get()), IsEmpty());
  harness.Die({"a", "b"});
  EXPECT_THAT(harness.Take(first.get()), ElementsAre("a#1"));
  EXPECT_THAT(harness.Take(second.get()), ElementsAre("b#1"));
  harness.group().SetOptions(SingleActive(true));
  harness.Die({"c"});
  first->TakeWakes();
  second->TakeWakes();
  // What the other one has it settles.
  ASSERT_TRUE(harness.Ack(2, 1).ok());
  EXPECT_EQ(second->TakeWakes(), 0);
  EXPECT_THAT(harness.Take(second.get()), IsEmpty());
  const auto members = harness.group().ListMembers();
  ASSERT_THAT(members, SizeIs(2));
  EXPECT_TRUE(members[0].active);
  EXPECT_EQ(members[0].in_flight, 1);
  EXPECT_FALSE(members[1].active);
  harness.group().SetOptions(SingleActive(false));
  EXPECT_EQ(second->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(second.get()), ElementsAre("c#1"));
}

class DeliveredTest : public ::testing::Test {
 protected:
  std::unique_ptr<TestMember> Join(int max_in_flight = 1) {
    return std::make_unique<TestMember>(&harness_.group(), max_in_flight,
                                        JoinAs{.wants_all_delivered = true});
  }

  GroupHarness harness_;
};

TEST_F(DeliveredTest, AllLearnOnceTheLastEventIsDelivered) {
  const auto first = Join();
  const auto second = Join();
  harness_.Take(first.get());
  harness_.Take(second.get());
  harness_.Die({"a", "b"});
  EXPECT_EQ(first->TakeWakes(), 1);
  EXPECT_EQ(second->TakeWakes(), 1);
  const EventChunk one = first->Take(harness_.now_us());
  EXPECT_FALSE(one.all_delivered);
  EXPECT_LT(one.delivered_us, harness_.now_us());
  EXPECT_EQ(first->TakeWakes(), 0);
  const EventChunk other = second->Take(harness_.now_us());
  EXPECT_TRUE(other.all_delivered);
  EXPECT_EQ(other.delivered_us, harness_.now_us());
  EXPECT_EQ(second->TakeWakes(), 0);
  EXPECT_EQ(first->TakeWakes(), 1);
  const EventChunk news = first->Take(harness_.now_us());
  EXPECT_TRUE(news.all_delivered);
  EXPECT_EQ(news.delivered_us, harness_.now_us());
  // Nothing more until the next death.
  EXPECT_FALSE(first->Take(harness_.now_us()).all_delivered);
  EXPECT_EQ(first->TakeWakes() + second->TakeWakes(), 0);
}

TEST_F(DeliveredTest, AnEventBehindAnotherOneOfItsKeyAwaitsItsDelivery) {
  const auto member = Join(10);
  harness_.Take(member.get());
  harness_.Die({"a"});
  harness_.Pass(kSecond);
  const int64_t before_us = harness_.now_us();
  harness_.Die({"a"});
  EXPECT_THAT(harness_.Take(member.get()), ElementsAre("a#1"));
  EXPECT_EQ(member->Take(harness_.now_us()).delivered_us, before_us - 1);
  ASSERT_TRUE(harness_.Ack(1, 1).ok());
  const EventChunk chunk = member->Take(harness_.now_us());
  EXPECT_THAT(Given(chunk), ElementsAre("a#1"));
  EXPECT_EQ(chunk.delivered_us, harness_.now_us());
}

TEST_F(DeliveredTest, WhatIsSettledUndeliveredAwaitsNothing) {
  const auto member = Join();
  harness_.Take(member.get());
  harness_.DieMany("k", 3);
  EXPECT_THAT(harness_.Take(member.get()), SizeIs(1));
  EXPECT_LT(member->Take(harness_.now_us()).delivered_us, harness_.now_us());
  ASSERT_TRUE(harness_.Ack(1, 1).ok());
  EXPECT_THAT(harness_.Take(member.get()), SizeIs(1));
  // As from before a restart.
  ASSERT_TRUE(harness_.Ack(3, 1).ok());
  EXPECT_EQ(member->Take(harness_.now_us()).delivered_us, harness_.now_us());
}

TEST_F(DeliveredTest, ManyMembersAreNotWokenWithoutEnd) {
  std::vector<std::unique_ptr<TestMember>> members;
  for (int i = 0; i < 100; ++i) {
    members.push_back(Join(1'000));
    harness_.Take(members.back().get());
  }
  int wakes = 0;
  for (int i = 0; i < 1'000; ++i) {
    harness_.Die({"k" + std::to_string(i)});
    for (const auto& member : members) {
      const int woken = member->TakeWakes();
      if (woken > 0) harness_.Take(member.get());
      wakes += woken;
    }
  }
  // Time stands still.
  EXPECT_LE(wakes, 1'000 + (ConsumerGroup::kMaxNewsAtOnce + 1) * 100);
  // As time passes, the rest is made up for.
  harness_.Pass(10 * kSecond);
  harness_.Advance();
  for (const auto& member : members) {
    member->TakeWakes();
    EXPECT_EQ(member->Take(harness_.now_us()).delivered_us, kStartUs);
  }
}

}  // namespace
}  // namespace timecache::server

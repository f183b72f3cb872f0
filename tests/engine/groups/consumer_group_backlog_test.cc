// What a group keeps, and what it loses.

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr size_t kKiB = 1024;

TEST(GroupBacklogTest, WakesAMemberForALossAlone) {
  GroupHarness harness(WithBacklog(8 << 20));
  const auto member = harness.Join();
  harness.Die({"a"}, 600 * kKiB);
  harness.Die({"b"}, 600 * kKiB);
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1", "b#1"));
  EXPECT_TRUE(harness.Nack(1, 1, kSecond).ok());
  EXPECT_TRUE(harness.Nack(2, 1, kSecond).ok());
  EXPECT_EQ(member->TakeWakes(), 0);
  harness.group().SetOptions(WithBacklog(1 << 20));
  EXPECT_EQ(member->TakeWakes(), 1);
  const EventChunk chunk = member->Take(harness.now_us());
  EXPECT_THAT(chunk.deliveries, IsEmpty());
  EXPECT_EQ(chunk.lost, 1u);
  harness.Pass(kSecond);
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("b#2"));
}

// What members hold is not dropped for the limit, so they may hold half of it.
TEST(GroupBacklogTest, MembersHoldHalfOfTheLimitAndNoMore) {
  GroupHarness harness(WithBacklog(1 << 20));
  const auto one = harness.Join();
  const auto two = harness.Join();
  harness.DieMany("a", 9, 100 * kKiB);
  const EventChunk chunk = one->Take(harness.now_us());
  two->Take(harness.now_us());
  EXPECT_THAT(one->Take(harness.now_us()).deliveries, IsEmpty());
  EXPECT_THAT(two->Take(harness.now_us()).deliveries, IsEmpty());
  // The last one passes the half.
  EXPECT_EQ(harness.Statistics().in_flight, 6u);
  EXPECT_GT(harness.Statistics().in_flight_bytes,
            static_cast<int64_t>(600 * kKiB));
  EXPECT_EQ(harness.account().in_flight_bytes(),
            harness.Statistics().in_flight_bytes);
  // More dies: the group keeps to its limit, and what members hold stays.
  for (int i = 0; i < 20; ++i) {
    harness.DieMany(absl::StrCat("b", i), 1, 100 * kKiB);
    harness.Advance();
    EXPECT_LE(harness.Statistics().backlog_bytes, 1 << 20);
  }
  EXPECT_EQ(harness.Statistics().in_flight, 6u);
  EXPECT_GT(harness.Statistics().lost, 0u);
  // Room wakes whoever waits for it.
  one->TakeWakes();
  two->TakeWakes();
  harness.AckAll(chunk);
  EXPECT_GT(one->TakeWakes() + two->TakeWakes(), 0);
  EXPECT_THAT(one->Take(harness.now_us()).deliveries, testing::Not(IsEmpty()));
  EXPECT_EQ(Sum(harness.Statistics()), 29u);
}

TEST(GroupBacklogTest, AnEventLargerThanMembersMayHoldIsGivenOutAlone) {
  GroupHarness harness(WithBacklog(1 << 20));
  const auto member = harness.Join();
  harness.DieMany("a", 2, 700 * kKiB);
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a0#1"));
  EXPECT_THAT(harness.Take(member.get()), IsEmpty());
  member->TakeWakes();
  EXPECT_TRUE(harness.Ack(1, 1).ok());
  EXPECT_EQ(member->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a1#1"));
}

TEST(GroupBacklogTest, TheAccountIsEmptyWhenAllIsSettledOrTheGroupIsGone) {
  GroupHarness harness;
  {
    const auto member = harness.Join();
    harness.DieMany("a", 10, kKiB);
    const EventChunk chunk = member->Take(harness.now_us());
    EXPECT_GT(harness.account().bytes(), 0);
    harness.AckAll(chunk);
    EXPECT_EQ(harness.account().bytes(), 0);
    EXPECT_EQ(harness.account().in_flight_bytes(), 0);
    harness.DieMany("b", 10, kKiB);
    EXPECT_THAT(member->Take(harness.now_us(), 5).deliveries, SizeIs(5));
  }
  EXPECT_EQ(harness.account().in_flight_bytes(), 0);
  harness.group().Close();
  EXPECT_EQ(harness.account().bytes(), 0);
}

TEST(GroupBacklogTest, TheNewestBatchStaysHoweverLargeItIs) {
  GroupHarness harness(WithBacklog(1 << 20));
  const auto member = harness.Join();
  harness.Die({"large"}, 3 << 20);
  harness.Advance();
  EXPECT_EQ(harness.Statistics().lost, 0u);
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("large#1"));
}

TEST(GroupBacklogTest, CopiesTheFewThatAreLeftBeforeItLosesAny) {
  GroupHarness harness(WithBacklog(1 << 20));
  const auto member = harness.Join();
  for (int i = 0; i < 8; ++i) {
    harness.DieMany(absl::StrCat(i, "-"), 10, 20 * kKiB);
    const EventChunk chunk = member->Take(harness.now_us());
    ASSERT_THAT(chunk.deliveries, SizeIs(10));
    for (const Delivery& delivery : chunk.deliveries) {
      if (delivery.event_id % 10 == 5) {
        EXPECT_TRUE(harness.Nack(delivery.event_id, 1, kSecond).ok());
      } else {
        EXPECT_TRUE(harness.Ack(delivery.event_id, 1).ok());
      }
    }
    harness.Advance();
  }
  EXPECT_EQ(harness.Statistics().lost, 0u);
  EXPECT_EQ(harness.Statistics().backlog, 8u);
  EXPECT_LE(harness.Statistics().backlog_bytes, 1 << 20);
  harness.Pass(kSecond);
  const EventChunk again = member->Take(harness.now_us());
  ASSERT_THAT(again.deliveries, SizeIs(8));
  for (size_t i = 0; i < 8; ++i) {
    const Delivery& delivery = again.deliveries[i];
    EXPECT_EQ(delivery.event_id, 10 * i + 5);
    EXPECT_EQ(delivery.event().key, absl::StrCat(i, "-4"));
    EXPECT_EQ(delivery.event().value.size(), 20 * kKiB);
  }
  harness.AckAll(again);
  EXPECT_EQ(harness.Statistics().backlog_bytes, 0);
}

TEST(GroupBacklogTest, ALowerLimitTakesEffectAtOnce) {
  GroupHarness harness(WithBacklog(8 << 20));
  for (int i = 0; i < 4; ++i) harness.DieMany("k", 1, 500 * kKiB);
  EXPECT_EQ(harness.Statistics().lost, 0u);
  harness.group().SetOptions(WithBacklog(1 << 20));
  EXPECT_EQ(harness.Statistics().lost, 2u);
}

TEST(GroupBacklogTest, NumbersThatTheLogSkippedAreLost) {
  GroupHarness harness;
  const auto member = harness.Join();
  harness.Die({"a"});
  harness.log().Skip(5);
  harness.Die({"b"});
  const EventChunk chunk = member->Take(harness.now_us());
  EXPECT_THAT(Given(chunk), ElementsAre("a#1", "b#1"));
  EXPECT_EQ(chunk.lost, 5u);
  EXPECT_EQ(chunk.deliveries[1].event_id, 7u);
}

}  // namespace
}  // namespace timecache::server

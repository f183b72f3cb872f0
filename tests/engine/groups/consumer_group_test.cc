#include "server/engine/groups/consumer_group.h"

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

TEST(ConsumerGroupTest, GivesAgainWhatIsNotSettledInTimeAndNotOneTickBefore) {
  GroupHarness harness(WithAckTimeout(10 * kSecond));
  const auto member = harness.Join();
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1"));
  EXPECT_EQ(harness.group().NextDueUs(), harness.now_us() + 10 * kSecond);
  EXPECT_EQ(harness.TakeScheduled(), harness.now_us() + 10 * kSecond);
  harness.Pass(10 * kSecond - 1);
  harness.Advance();
  EXPECT_EQ(member->TakeWakes(), 0);
  EXPECT_THAT(harness.Take(member.get()), IsEmpty());
  const auto other = harness.Join();
  EXPECT_THAT(harness.Take(other.get()), IsEmpty());
  harness.Pass(1);
  harness.Advance();
  EXPECT_EQ(member->TakeWakes(), 0);
  EXPECT_EQ(other->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(other.get()), ElementsAre("a#2"));
  const GroupStatistics statistics = harness.Statistics();
  EXPECT_EQ(statistics.timed_out, 1u);
  EXPECT_EQ(statistics.delivered, 2u);
  EXPECT_EQ(statistics.redelivered, 1u);
}

TEST(ConsumerGroupTest, ThreeMembersShareOneBatch) {
  GroupHarness harness;
  const auto one = harness.Join();
  const auto two = harness.Join();
  const auto three = harness.Join();
  for (const auto& member : {one.get(), two.get(), three.get()}) {
    EXPECT_THAT(harness.Take(member), IsEmpty());
  }
  harness.DieMany("k", 900);
  for (const auto& member : {one.get(), two.get(), three.get()}) {
    EXPECT_EQ(member->TakeWakes(), 1);
    EXPECT_THAT(harness.Take(member), SizeIs(300));
  }
}

TEST(ConsumerGroupTest, AMemberThatDoesNotComeLeavesItsShareToTheOthers) {
  GroupHarness harness;
  const auto one = harness.Join();
  const auto stuck = harness.Join();
  harness.DieMany("k", 900);
  size_t taken = 0;
  for (bool more = true; more;) {
    const EventChunk chunk = one->Take(harness.now_us());
    taken += chunk.deliveries.size();
    more = chunk.more;
  }
  EXPECT_EQ(taken, 900u);
}

TEST(ConsumerGroupTest, SingleEventsGoRound) {
  GroupHarness harness;
  std::vector<std::unique_ptr<TestMember>> members;
  for (int i = 0; i < 3; ++i) {
    members.push_back(harness.Join());
    EXPECT_THAT(harness.Take(members.back().get()), IsEmpty());
  }
  for (int i = 0; i < 9; ++i) {
    harness.Die({absl::StrCat("k", i)});
    for (int m = 0; m < 3; ++m) {
      TestMember* const member = members[static_cast<size_t>(m)].get();
      ASSERT_EQ(member->TakeWakes(), m == i % 3 ? 1 : 0) << i << " " << m;
      if (m != i % 3) continue;
      EXPECT_THAT(harness.Take(member), SizeIs(1));
    }
  }
}

TEST(ConsumerGroupTest, WakesAMemberOnceUntilItHasTakenAll) {
  GroupHarness harness;
  const auto member = harness.Join();
  EXPECT_FALSE(member->Take(harness.now_us()).more);
  harness.Die({"a"});
  harness.Die({"b"});
  EXPECT_EQ(member->TakeWakes(), 1);
  EXPECT_TRUE(member->Take(harness.now_us(), 1).more);
  harness.Die({"c"});
  EXPECT_EQ(member->TakeWakes(), 0);
  EXPECT_FALSE(member->Take(harness.now_us()).more);
  EXPECT_EQ(member->TakeWakes(), 0);
  harness.Die({"d"});
  EXPECT_EQ(member->TakeWakes(), 1);
}

TEST(ConsumerGroupTest, WakesAnotherWhenTheOneThatWasWokenDoesNotCome) {
  GroupHarness harness;
  const auto stuck = harness.Join();
  const auto other = harness.Join();
  harness.Take(stuck.get());
  harness.Take(other.get());
  harness.Die({"a"});
  EXPECT_EQ(stuck->TakeWakes(), 1);
  EXPECT_EQ(harness.group().NextDueUs(),
            harness.now_us() + MemberScheduler::kPatienceUs);
  harness.Pass(MemberScheduler::kPatienceUs - 1);
  harness.Advance();
  EXPECT_EQ(other->TakeWakes(), 0);
  harness.Pass(1);
  harness.Advance();
  EXPECT_EQ(other->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(other.get()), ElementsAre("a#1"));
  // From now on nobody waits for the one that is stuck.
  harness.Die({"b"});
  EXPECT_EQ(stuck->TakeWakes(), 0);
  EXPECT_EQ(other->TakeWakes(), 1);
  EXPECT_THAT(harness.Take(stuck.get()), ElementsAre("b#1"));
}

TEST(ConsumerGroupTest, OneWhoHoldsVeryManyGivesThemAllBack) {
  GroupHarness harness;
  const auto one = harness.Join(8192);
  const auto two = harness.Join(8192);
  harness.Take(two.get());
  harness.DieMany("k", 5000);
  while (one->Take(harness.now_us()).more) {
  }
  EXPECT_EQ(harness.Statistics().in_flight, 5000u);
  one->Leave();
  EXPECT_EQ(harness.Statistics().in_flight, 0u);
  EXPECT_EQ(harness.Statistics().members, 1);
  while (two->Take(harness.now_us()).more) {
  }
  EXPECT_EQ(harness.Statistics().redelivered, 5000u);
}

TEST(ConsumerGroupTest, WakesNobodyWhoMayTakeNoMore) {
  GroupHarness harness;
  const auto full = harness.Join(1);
  const auto other = harness.Join(1);
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(full.get()), ElementsAre("a#1"));
  EXPECT_THAT(harness.Take(other.get()), IsEmpty());
  harness.Die({"b", "c"});
  EXPECT_EQ(full->TakeWakes(), 0);
  EXPECT_EQ(other->TakeWakes(), 1);
}

TEST(ConsumerGroupTest, GivesAboutMaxBytesAndAtLeastOne) {
  GroupHarness harness;
  const auto member = harness.Join();
  harness.Die({"a", "b", "c"}, 1000);
  const EventChunk first = member->Take(harness.now_us(), 1000, 1);
  EXPECT_THAT(Given(first), ElementsAre("a#1"));
  EXPECT_TRUE(first.more);
  const EventChunk second = member->Take(harness.now_us(), 1000, 2100);
  EXPECT_THAT(Given(second), ElementsAre("b#1", "c#1"));
  EXPECT_FALSE(second.more);
}

TEST(ConsumerGroupTest, GivesOutNothingFreshWhileTooMuchWaitsBehindItsKey) {
  GroupHarness harness;
  const auto member = harness.Join();
  const int batches =
      static_cast<int>(GroupLedger::kMaxBlockedByKey) / kMaxEventBatchEvents;
  harness.Die({"a"});
  for (int i = 0; i < batches; ++i) {
    harness.Die(std::vector<std::string>(kMaxEventBatchEvents, "a"));
  }
  harness.Die({"b"});
  size_t given = 0;
  for (bool more = true; more;) {
    const EventChunk chunk = member->Take(harness.now_us());
    given += chunk.deliveries.size();
    more = chunk.more;
  }
  EXPECT_EQ(given, 1u);
  EXPECT_TRUE(harness.Ack(1, 1).ok());
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#1", "b#1"));
}

TEST(ConsumerGroupTest, TheWatermarkStaysBehindWhatIsUnsettled) {
  GroupHarness harness;
  const auto member = harness.Join();
  const int64_t first_us = harness.now_us();
  harness.Die({"a"});
  harness.Pass(kSecond);
  const int64_t second_us = harness.now_us();
  harness.Die({"b"});
  EXPECT_EQ(member->Take(harness.now_us()).watermark_us, first_us - 1);
  EXPECT_EQ(harness.Statistics().oldest_unsettled_us, first_us);
  EXPECT_TRUE(harness.Ack(2, 1).ok());
  EXPECT_EQ(member->Take(harness.now_us()).watermark_us, first_us - 1);
  EXPECT_TRUE(harness.Nack(1, 1).ok());
  EXPECT_THAT(harness.Take(member.get()), ElementsAre("a#2"));
  EXPECT_TRUE(harness.Ack(1, 2).ok());
  EXPECT_EQ(member->Take(harness.now_us()).watermark_us, second_us);
  harness.Pass(kSecond);
  harness.log().AdvanceWatermark(harness.now_us());
  EXPECT_EQ(member->Take(harness.now_us()).watermark_us, harness.now_us());
}

TEST(ConsumerGroupTest, ClosingEndsAllMembers) {
  GroupHarness harness;
  const auto idle = harness.Join();
  const auto full = harness.Join(1);
  harness.Take(idle.get());
  harness.Die({"a"});
  EXPECT_THAT(harness.Take(full.get()), ElementsAre("a#1"));
  harness.group().Close();
  EXPECT_EQ(idle->TakeWakes(), 1);
  EXPECT_EQ(full->TakeWakes(), 1);
  for (TestMember* const member : {idle.get(), full.get()}) {
    const EventChunk chunk = member->Take(harness.now_us());
    EXPECT_TRUE(chunk.closed);
    EXPECT_THAT(chunk.deliveries, IsEmpty());
  }
  harness.Die({"b"});
  harness.Pass(3600 * kSecond);
  EXPECT_THAT(harness.Advance(), IsEmpty());
  EXPECT_EQ(ReasonOf(harness.Ack(1, 1)), Reason::kEventNotUnsettled);
  full->Leave();
  EXPECT_EQ(idle->TakeWakes(), 0);
  EXPECT_EQ(harness.Statistics().backlog_bytes, 0);
  EXPECT_EQ(harness.group().NextDueUs(), kNeverUs);
}

TEST(ConsumerGroupTest, NamesTheOptionThatIsOutOfItsRange) {
  GroupOptions options;
  EXPECT_TRUE(Validate(options).ok());
  options.ack_timeout_us = kMinAckTimeoutUs - 1;
  EXPECT_EQ(FieldOf(Validate(options)), "ack_timeout");
  options.ack_timeout_us = kMaxAckTimeoutUs + 1;
  EXPECT_EQ(FieldOf(Validate(options)), "ack_timeout");
  options = GroupOptions();
  options.max_attempts = 0;
  EXPECT_EQ(FieldOf(Validate(options)), "max_attempts");
  options.max_attempts = kMaxAttempts + 1;
  EXPECT_EQ(FieldOf(Validate(options)), "max_attempts");
  options = GroupOptions();
  options.max_backlog_bytes = kMinBacklogBytes - 1;
  EXPECT_EQ(FieldOf(Validate(options)), "max_backlog_bytes");
  options.max_backlog_bytes = kMaxBacklogBytes + 1;
  EXPECT_EQ(FieldOf(Validate(options)), "max_backlog_bytes");
}

}  // namespace
}  // namespace timecache::server

// Groups that start at a position of the log, or are moved to one, and groups of
// a part of the keys: also where they are made again.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/engine/groups/groups_replay_fixture.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Start = ExpiryLog::Start;

class GroupPositionsTest : public GroupsReplayTest {
 protected:
  static NamespaceOptions Retaining() {
    NamespaceOptions options = CrashOptions(10 * kSecond, 11);
    options.retention_us = 10'000 * kSecond;
    return options;
  }
  GroupPositionsTest() : GroupsReplayTest(Retaining()) {}

  SeekResult Seek(const LogPosition& position, bool drop = false) {
    const auto result = groups().Seek(kGroup, position, drop, now_us_);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.value_or(SeekResult());
  }
  // All that was settled, held or lost is what the group got.
  void CheckCounts() {
    const GroupStatistics s = Statistics();
    EXPECT_EQ(s.events, s.backlog + s.in_flight + s.acked + s.put_back +
                            s.dead_lettered + s.terminated + s.lost +
                            s.skipped);
  }
  void CommitAndCrash(std::unique_ptr<TestMember>* member) {
    journaled_.Commit();
    Crash(member);
    CheckCounts();
  }
  LogPoint PointHere() {
    return journaled_.map()
        .Subscribe(Start::kNow, now_us_, [] {})
        ->Read(int64_t{1} << 20)
        .point;
  }
  std::vector<std::string> Unsettled(const std::string& prefix = "") {
    std::vector<std::string> keys;
    for (const UnsettledInfo& each :
         group()->List({.key_prefix = prefix}).events) {
      keys.push_back(std::string(each.delivery.event().key));
    }
    return keys;
  }
};

TEST_F(GroupPositionsTest, SeekToEarliestDeliversAgainWhatWasSettled) {
  Create();
  auto member = Join();
  Die({"a"});
  Die({"b"});
  Take(member.get());
  ASSERT_TRUE(Ack("a").ok());
  const uint64_t id = group()->delivery_id();
  const SeekResult result = Seek(Start::kEarliest);
  EXPECT_EQ(result.unsettled, 2u);
  EXPECT_EQ(result.dropped, 0u);
  EXPECT_NE(group()->delivery_id(), id);
  // The stream goes on, and what it held is not its own any more.
  EXPECT_EQ(ReasonOf(Ack("b")), Reason::kStaleAttempt);
  CheckCounts();
  EXPECT_THAT(Take(member.get()), ElementsAre("a#1", "b#1"));
  ASSERT_TRUE(Ack("b").ok());
  CommitAndCrash(&member);
  EXPECT_THAT(Unsettled(), ElementsAre("a"));
  EXPECT_EQ(Statistics().acked, 2u);
  member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(Ack("a").ok());
}

TEST_F(GroupPositionsTest, WhatIsBeforeThePositionStaysWithItsAttempts) {
  Create();
  auto member = Join();
  Die({"a", "b"});
  const int64_t between_us = now_us_;
  Die({"c"});
  Take(member.get());
  ASSERT_TRUE(Nack("a", 1, 0).ok());
  ASSERT_TRUE(Nack("c", 1, 0).ok());
  EXPECT_EQ(Seek(LogPosition::After(between_us)).unsettled, 3u);
  CommitAndCrash(&member);
  member = Join();
  EXPECT_THAT(Take(member.get()), UnorderedElementsAre("a#2", "b#1", "c#1"));
}

// Held, delayed with a reason, being put back: nothing of them is counted.
TEST_F(GroupPositionsTest, WhatIsDroppedTakesNoMemoryAndNoRoom) {
  Create();
  auto member = Join();
  Die({"a", "b", "c", "d"});
  Take(member.get());
  Settlement nack = SettlementOfKey("a", 1, SettleAction::kNack);
  nack.delay_us = 100 * kSecond;
  nack.reason = "busy";
  ASSERT_TRUE(Settle(nack).status.ok());
  const Settlement put_back = SettlementOfKey("b", 1, SettleAction::kPutBack);
  ASSERT_TRUE(group()->BeginPutBack(put_back, now_us_).ok());
  Die({"e"});
  EXPECT_EQ(Seek(Start::kNow, true).dropped, 5u);
  group()->EndPutBack(put_back.event_id, true, now_us_);
  const GroupStatistics statistics = Statistics();
  EXPECT_EQ(statistics.backlog, 0u);
  EXPECT_EQ(statistics.backlog_bytes, 0);
  EXPECT_EQ(statistics.in_flight, 0u);
  EXPECT_EQ(statistics.in_flight_bytes, 0);
  EXPECT_EQ(statistics.put_back, 0u);
  CheckCounts();
  Die({"f"});
  EXPECT_THAT(Take(member.get()), ElementsAre("f#1"));
  EXPECT_TRUE(Ack("f").ok());
  CommitAndCrash(&member);
}

TEST_F(GroupPositionsTest, DropUnsettledDropsWhatIsBeforeThePosition) {
  Create();
  auto member = Join();
  Die({"a", "b"});
  Take(member.get());
  Die({"c"});
  const int64_t between_us = now_us_;
  Die({"d"});
  const SeekResult result = Seek(LogPosition::After(between_us), true);
  EXPECT_EQ(result.unsettled, 1u);
  EXPECT_EQ(result.dropped, 3u);
  CheckCounts();
  EXPECT_EQ(Statistics().lost, 0u);
  CommitAndCrash(&member);
  member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("d#1"));
  Seek(Start::kNow, true);
  EXPECT_THAT(Take(member.get()), IsEmpty());
  Die({"e"});
  EXPECT_THAT(Take(member.get()), ElementsAre("e#1"));
  CommitAndCrash(&member);
  EXPECT_THAT(Unsettled(), ElementsAre("e"));
}

TEST_F(GroupPositionsTest, ATokenCountsWhatIsNoLongerRetained) {
  Create();
  auto member = Join();
  const LogPoint begin = PointHere();
  Die({"a"});
  Die({"b"});
  Take(member.get());
  ASSERT_TRUE(Ack("a").ok());
  NamespaceOptions options = journaled_.map().options();
  options.retention_us = 0;
  journaled_.map().Update(options, now_us_);
  Pass(kSecond);
  options.retention_us = 10'000 * kSecond;
  journaled_.map().Update(options, now_us_);
  Die({"c"});
  // "a" is gone; the group still has "b".
  EXPECT_EQ(Seek(LogPosition::At(begin)).unsettled, 2u);
  EXPECT_EQ(Statistics().lost, 1u);
  CheckCounts();
  EXPECT_THAT(Take(member.get()), ElementsAre("b#1", "c#1"));
  CommitAndCrash(&member);
  EXPECT_EQ(Statistics().lost, 1u);
  EXPECT_THAT(Unsettled(), ElementsAre("b", "c"));
  LogPoint ahead = begin;
  ahead.next_event += 1'000;
  EXPECT_EQ(ReasonOf(groups()
                         .Seek(kGroup, LogPosition::At(ahead), false, now_us_)
                         .status()),
            Reason::kResumePointAhead);
  ahead.log_id += 1;
  EXPECT_EQ(ReasonOf(groups()
                         .Seek(kGroup, LogPosition::At(ahead), false, now_us_)
                         .status()),
            Reason::kLogChanged);
}

TEST_F(GroupPositionsTest, TheWatermarkGoesBack) {
  Create();
  auto member = Join();
  Die({"a"});
  Take(member.get());
  ASSERT_TRUE(Ack("a").ok());
  journaled_.Commit();
  const int64_t before_us = member->Take(now_us_).watermark_us;
  Seek(Start::kEarliest);
  EXPECT_LT(member->Take(now_us_).watermark_us, before_us);
}

TEST_F(GroupPositionsTest, AGroupStartsAfterATimeOrAtAToken) {
  Die({"a"});
  const LogPoint point = PointHere();
  const int64_t between_us = now_us_;
  Die({"b"});
  ASSERT_TRUE(groups()
                  .Create("time", GroupOptions(),
                          LogPosition::After(between_us), now_us_)
                  .ok());
  ASSERT_TRUE(
      groups()
          .Create("token", GroupOptions(), LogPosition::At(point), now_us_)
          .ok());
  journaled_.Commit();
  Crash(nullptr);
  for (const auto& each : groups().List()) {
    EXPECT_EQ(each->GetStatistics().backlog, 1u) << each->name();
  }
}

// A walk of a checkpoint writes a group while it moves.
TEST_F(GroupPositionsTest, MovesWhileItIsWrittenAgain) {
  for (const bool drop : {false, true}) {
    for (int at = 0; at < 14; ++at) {
      SCOPED_TRACE(absl::StrCat(drop, " ", at));
      if (groups().Find(kGroup).ok()) {
        ASSERT_TRUE(groups().Delete(kGroup).ok());
      }
      Create();
      auto member = Join();
      std::vector<std::string> keys;
      for (int i = 0; i < 6; ++i) {
        keys.push_back(absl::StrCat("key", i));
        Die({keys.back()});
      }
      const int64_t between_us = now_us_ - 45 * kSecond;
      Take(member.get());
      ASSERT_TRUE(Ack("key1").ok());
      ASSERT_TRUE(Ack("key4").ok());
      bool moved = false;
      for (int step = 0; journaled_.StepTrim(now_us_, 1) || step < at; ++step) {
        Pass(0);
        if (step != at) continue;
        Seek(LogPosition::After(between_us), drop);
        moved = true;
        Take(member.get());
        ASSERT_TRUE(Ack("key5").ok());
      }
      if (!moved) break;
      const std::vector<std::string> before = Unsettled();
      const uint64_t acked = Statistics().acked;
      CheckCounts();
      CommitAndCrash(&member);
      EXPECT_EQ(Unsettled(), before);
      EXPECT_EQ(Statistics().acked, acked);
      EXPECT_EQ(Statistics().lost, 0u);
    }
  }
}

// --- Groups of a part of the keys.

TEST_F(GroupPositionsTest, EventsOfOtherKeysAreNotTheGroups) {
  GroupOptions options;
  options.key_prefix = "eu/";
  Die({"eu/early", "us/early"});
  Create(options, Start::kEarliest);
  auto member = Join();
  Die({"us/1", "eu/1", "us/2", "eu/2", "x"});
  Die({"us/3"});
  Die({"eu/3", "eu/4"});
  EXPECT_EQ(Statistics().backlog, 5u);
  EXPECT_EQ(Statistics().events, 5u);
  EXPECT_THAT(Take(member.get()),
              UnorderedElementsAre("eu/early#1", "eu/1#1", "eu/2#1", "eu/3#1",
                                   "eu/4#1"));
  ASSERT_TRUE(Ack("eu/2").ok());
  CheckCounts();
  CommitAndCrash(&member);
  EXPECT_EQ(group()->options().key_prefix, "eu/");
  EXPECT_EQ(Statistics().events, 5u);
  EXPECT_EQ(Statistics().lost, 0u);
  Die({"us/5", "eu/5"});
  EXPECT_THAT(Unsettled(),
              UnorderedElementsAre("eu/early", "eu/1", "eu/3", "eu/4", "eu/5"));
  EXPECT_THAT(Unsettled("eu/e"), ElementsAre("eu/early"));
  Seek(Start::kEarliest);
  CheckCounts();
  EXPECT_EQ(Statistics().backlog, 6u);
  // Written again, and then made again.
  while (journaled_.StepTrim(now_us_, 2)) Pass(0);
  CommitAndCrash(&member);
  EXPECT_EQ(group()->options().key_prefix, "eu/");
  EXPECT_EQ(Statistics().backlog, 6u);
  EXPECT_EQ(Statistics().lost, 0u);
  member = Join();
  EXPECT_EQ(Take(member.get()).size(), 6u);
}

TEST_F(GroupPositionsTest, ABatchWithoutItsKeysTakesNoMemoryOfTheGroup) {
  GroupOptions options;
  options.key_prefix = "eu/";
  Create(options);
  Die({"us/1", "us/2"});
  EXPECT_EQ(Statistics().backlog_bytes, 0);
  EXPECT_EQ(groups().account().bytes(), 0);
  Die({"ca", "eu/1", "us"});
  EXPECT_EQ(Statistics().backlog, 1u);
  EXPECT_GT(Statistics().backlog_bytes, 0);
}

TEST_F(GroupPositionsTest, DroppedEventsOfAPartOfTheKeysAreCountedOnce) {
  GroupOptions options;
  options.key_prefix = "eu/";
  options.max_backlog_bytes = kMinBacklogBytes;
  Create(options);
  const std::string value(10'000, 'v');
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 50; ++i) {
      for (const char* const region : {"eu/", "us/"}) {
        ASSERT_TRUE(journaled_.map()
                        .Apply(Operation::Put(
                                   absl::StrCat(region, round, "/", i), value),
                               now_us_)
                        .status.ok());
      }
    }
    Pass(20 * kSecond);
  }
  EXPECT_GT(Statistics().lost, 0u);
  EXPECT_EQ(Statistics().events, 200u);
  CheckCounts();
  const uint64_t lost = Statistics().lost;
  CommitAndCrash(nullptr);
  EXPECT_EQ(Statistics().lost, lost);
  EXPECT_EQ(Statistics().events, 200u);
}

// --- Retries, and operators.

TEST_F(GroupPositionsTest, AListOfRetryDelaysCountsAndIsKept) {
  GroupOptions options;
  options.retry_delay_us = kSecond;
  options.retry_delays_us = {60 * kSecond, 0, 90 * kSecond};
  EXPECT_EQ(RetryDelayUs(options, 1, 1), 60 * kSecond);
  EXPECT_EQ(RetryDelayUs(options, 1, 2), 0);
  EXPECT_EQ(RetryDelayUs(options, 1, 3), 90 * kSecond);
  EXPECT_EQ(RetryDelayUs(options, 1, 9), 90 * kSecond);
  Create(options);
  CommitAndCrash(nullptr);
  EXPECT_EQ(group()->options().retry_delays_us, options.retry_delays_us);
  ASSERT_TRUE(groups()
                  .Update(kGroup,
                          [](GroupOptions* to) {
                            to->retry_delays_us.clear();
                            return absl::OkStatus();
                          })
                  .ok());
  CommitAndCrash(nullptr);
  EXPECT_THAT(group()->options().retry_delays_us, IsEmpty());
  options.retry_delays_us.assign(kMaxRetryDelays + 1, 0);
  EXPECT_FALSE(Validate(options).ok());
  options.retry_delays_us = {-1};
  EXPECT_FALSE(Validate(options).ok());
}

class OperatorTest : public GroupPositionsTest {
 protected:
  Settlement ByOperator(const std::string& key, SettleAction action) {
    for (const UnsettledInfo& each : group()->List({}).events) {
      if (each.delivery.event().key != key) continue;
      Settlement settlement = {each.delivery.event_id, 0, action};
      settlement.group_id = each.delivery.group_id;
      settlement.by_operator = true;
      return settlement;
    }
    ADD_FAILURE() << key << " is settled";
    return {};
  }
  absl::Status Do(const std::string& key, SettleAction action,
                  std::optional<int64_t> delay_us = {}) {
    Settlement settlement = ByOperator(key, action);
    settlement.delay_us = delay_us;
    settlement.reason = "by hand";
    return Settle(settlement).status;
  }
  UnsettledInfo InfoOf(const std::string& key) {
    for (const UnsettledInfo& each : group()->List({}).events) {
      if (each.delivery.event().key == key) return each;
    }
    ADD_FAILURE() << key << " is settled";
    return {};
  }
};

TEST_F(OperatorTest, AnEventIsListedAsItIs) {
  Create();
  auto member = Join();
  Die({"a"});
  Take(member.get());
  const int64_t since_us = now_us_;
  Pass(kSecond);
  UnsettledInfo info = InfoOf("a");
  EXPECT_EQ(info.state, UnsettledState::kInFlight);
  EXPECT_NE(info.member_id, 0u);
  EXPECT_EQ(info.since_us, since_us);
  EXPECT_EQ(info.due_us, since_us + GroupOptions().ack_timeout_us);
  EXPECT_EQ(info.delivery.attempt, 1);
  ASSERT_TRUE(Nack("a", 1, 5 * kSecond).ok());
  info = InfoOf("a");
  EXPECT_EQ(info.state, UnsettledState::kDelayed);
  EXPECT_EQ(info.due_us, now_us_ + 5 * kSecond);
  EXPECT_EQ(info.since_us, kNeverUs);
  Die({"a"});
  Die({"b"});
  const UnsettledPage page = group()->List({.most = 2});
  ASSERT_EQ(page.events.size(), 2u);
  EXPECT_EQ(page.events[1].state, UnsettledState::kBlockedByKey);
  ASSERT_TRUE(page.next.has_value());
  const UnsettledPage rest = group()->List({.from = *page.next});
  ASSERT_EQ(rest.events.size(), 1u);
  EXPECT_EQ(rest.events[0].delivery.event().key, "b");
  EXPECT_EQ(rest.events[0].delivery.attempt, 0);
  EXPECT_EQ(rest.events[0].state, UnsettledState::kReady);
  EXPECT_FALSE(rest.next.has_value());
}

TEST_F(OperatorTest, SettlesWhatAMemberHoldsAndWhatNoneHasHad) {
  Create();
  auto member = Join();
  Die({"held", "other"});
  Take(member.get());
  Die({"fresh", "terminated", "put"});
  EXPECT_TRUE(Do("held", SettleAction::kAck).ok());
  EXPECT_TRUE(Do("fresh", SettleAction::kAck).ok());
  EXPECT_TRUE(Do("terminated", SettleAction::kTerminate).ok());
  EXPECT_TRUE(Do("put", SettleAction::kPutBack).ok());
  EXPECT_EQ(ReasonOf(Ack("held")), Reason::kEventNotUnsettled);
  EXPECT_THAT(Unsettled(), ElementsAre("other"));
  EXPECT_EQ(ReasonOf(Settle([&] {
                       Settlement extend =
                           ByOperator("other", SettleAction::kExtend);
                       extend.group_id ^= 1;
                       return extend;
                     }())
                         .status),
            Reason::kStaleAttempt);
  EXPECT_TRUE(Do("other", SettleAction::kExtend).ok());
  EXPECT_EQ(Statistics().acked, 2u);
  EXPECT_EQ(Statistics().put_back, 1u);
  EXPECT_EQ(Statistics().terminated, 1u);
  CommitAndCrash(&member);
  EXPECT_EQ(Statistics().acked, 2u);
  EXPECT_EQ(Statistics().terminated, 1u);
  EXPECT_EQ(ReasonOf(Do("other", SettleAction::kExtend)),
            Reason::kStaleAttempt);
}

TEST_F(OperatorTest, ANackEndsAnAttemptOnlyIfOneIsGoingOn) {
  Create();
  auto member = Join();
  Die({"a", "b"});
  Take(member.get());
  ASSERT_TRUE(Nack("b", 1, 500 * kSecond).ok());
  Die({"fresh"});
  EXPECT_TRUE(Do("a", SettleAction::kNack, 0).ok());
  EXPECT_TRUE(Do("b", SettleAction::kNack).ok());
  EXPECT_TRUE(Do("fresh", SettleAction::kNack, 60 * kSecond).ok());
  CommitAndCrash(&member);
  EXPECT_EQ(InfoOf("fresh").state, UnsettledState::kDelayed);
  EXPECT_EQ(InfoOf("fresh").delivery.attempt, 0);
  member = Join();
  const EventChunk chunk = member->Take(now_us_);
  EXPECT_THAT(Given(chunk), UnorderedElementsAre("a#2", "b#2"));
  EXPECT_EQ(*chunk.deliveries[0].reason_text, "by hand");
  EXPECT_EQ(*chunk.deliveries[1].reason_text, "by hand");
  Pass(60 * kSecond);
  EXPECT_THAT(Take(member.get()), ElementsAre("fresh#1"));
}

// Of one key, whatever the order: what waits behind another stays behind it.
TEST_F(OperatorTest, AnEventBehindAnotherOfItsKeyIsSettledAndKeepsItsTurn) {
  Create();
  auto member = Join();
  Die({"a"});
  Die({"a"});
  Die({"a"});
  Take(member.get());
  const UnsettledPage page = group()->List({});
  ASSERT_EQ(page.events.size(), 3u);
  Settlement settlement = {page.events[1].delivery.event_id, 0,
                           SettleAction::kNack, kSecond};
  settlement.group_id = group()->delivery_id();
  settlement.by_operator = true;
  EXPECT_TRUE(Settle(settlement).status.ok());
  Pass(2 * kSecond);
  EXPECT_THAT(Take(member.get()), IsEmpty());
  settlement.action = SettleAction::kTerminate;
  EXPECT_TRUE(Settle(settlement).status.ok());
  EXPECT_THAT(Take(member.get()), IsEmpty());
  ASSERT_TRUE(Ack("a").ok());
  EXPECT_THAT(Take(member.get()), ElementsAre("a#1"));
}

}  // namespace
}  // namespace timecache::server

// Groups that are made again from a journal without its beginning, behind which
// they were told again.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/groups/groups_replay_fixture.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using Kind = GroupChange::Kind;

class GroupsToldAgainTest : public GroupsReplayTest {
 protected:
  static NamespaceOptions WithoutRetention() {
    NamespaceOptions options = CrashOptions(10 * kSecond, 11);
    options.retention_us = 0;
    return options;
  }
  GroupsToldAgainTest() : GroupsReplayTest(WithoutRetention()) {}

  // Tells all again, `most` events a step, and drops what was committed before.
  void AppendAgain(int most = 3) {
    do {
      Pass(0);
    } while (journaled_.StepTrim(now_us_, most));
  }
};

TEST_F(GroupsToldAgainTest, WhatTheyKeepIsAllThereAndTheRestIsNotNeeded) {
  Create(WithAckTimeout(3600 * kSecond));
  auto member = Join();
  std::vector<std::string> keys;
  for (int i = 0; i < 50; ++i) keys.push_back(absl::StrCat("key", i));
  Die(keys);
  Take(member.get());
  for (int i = 0; i < 50; ++i) {
    const std::string key = absl::StrCat("key", i);
    if (i % 3 == 0) {
      ASSERT_TRUE(Ack(key).ok());
    } else if (i % 3 == 1) {
      ASSERT_TRUE(Nack(key, 1, 600 * kSecond).ok());
    }
  }
  Die({"later1", "later2"});
  AppendAgain();
  const GroupStatistics before = Statistics();
  const auto described = journaled_.DescribeGroups();
  member.reset();
  journaled_.Crash(now_us_);
  const GroupStatistics after = Statistics();
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.acked, before.acked);
  EXPECT_EQ(after.nacked, before.nacked);
  EXPECT_EQ(after.lost, 0u);
  EXPECT_EQ(after.backlog, before.backlog + before.in_flight);
  const auto again = journaled_.DescribeGroups();
  ASSERT_EQ(again.size(), described.size());
  for (size_t i = 1; i < again.size(); ++i) {
    const GroupChange is = again[i].change();
    const GroupChange was = described[i].change();
    EXPECT_EQ(is.first, was.first);
    EXPECT_EQ(is.attempt, was.attempt);
    EXPECT_EQ(is.ready_us, was.ready_us);
    EXPECT_EQ(is.event.key, was.event.key);
    EXPECT_EQ(is.event.value, was.event.value);
    EXPECT_EQ(is.event.version, was.event.version);
    EXPECT_EQ(is.event.put_us, was.event.put_us);
    EXPECT_EQ(is.event.deadline_us, was.event.deadline_us);
    EXPECT_EQ(is.death.death_us, was.death.death_us);
    EXPECT_EQ(is.death.published_us, was.death.published_us);
    EXPECT_EQ(is.death.cause, was.death.cause);
  }
}

TEST_F(GroupsToldAgainTest, ARememberedNameIsToldAgain) {
  GroupOptions options;
  options.unused_ttl_us = kSecond;
  Create(options);
  Die({"a"});
  Pass(20 * kSecond);
  ASSERT_EQ(groups().LastExpired(10).size(), 1u);
  AppendAgain();
  journaled_.Crash(now_us_);
  const auto expired = groups().LastExpired(10);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].name, kGroup);
  EXPECT_EQ(expired[0].next_event, JournaledMap::kFirstEvent + 1);
}

// It may begin while others are told again, with what is told again.
TEST_F(GroupsToldAgainTest, ANewGroupBeginsWithEventsThatWereToldAgain) {
  // Keeps them in the log, which has no retention.
  auto unread =
      journaled_.map().Subscribe(ExpiryLog::Start::kNow, now_us_, [] {});
  Die({"a", "b"});
  for (int step = 0; journaled_.StepTrim(now_us_, 3); ++step) {
    Pass(0);
    ASSERT_TRUE(groups()
                    .Create(absl::StrCat("g", step), GroupOptions(),
                            ExpiryLog::Start::kEarliest, now_us_)
                    .ok());
    Pass(0);
  }
  const size_t count = groups().List().size();
  EXPECT_GT(count, 4u);
  // With its log.
  unread = nullptr;
  journaled_.Crash(now_us_);
  ASSERT_EQ(groups().List().size(), count);
  for (const auto& group : groups().List()) {
    EXPECT_EQ(group->GetStatistics().backlog, 2u) << group->name();
    EXPECT_EQ(group->GetStatistics().lost, 0u) << group->name();
  }
}

// A delivery may end before its event is told again.
TEST_F(GroupsToldAgainTest, CountsAreThoseOfTheDeliveriesThatEndedMeanwhile) {
  Create();
  std::vector<std::string> keys;
  for (int i = 0; i < 20; ++i) keys.push_back(absl::StrCat("key", i));
  Die(keys);
  auto member = Join();
  Take(member.get());
  // Returned.
  member = Join();
  ASSERT_EQ(Take(member.get()).size(), keys.size());
  std::map<uint64_t, std::string> unsettled;
  for (const std::string& key : keys) unsettled[events_.at(key)] = key;
  const auto ack_last = [&] {
    ASSERT_TRUE(Ack(unsettled.rbegin()->second).ok());
    unsettled.erase(unsettled.rbegin()->first);
  };
  while (journaled_.StepTrim(now_us_, 1)) {
    ack_last();
    Pass(0);
  }
  // Some were told again, some were not.
  EXPECT_GT(unsettled.size(), 5u);
  EXPECT_LT(unsettled.size(), 15u);
  while (!unsettled.empty()) ack_last();
  journaled_.Commit();
  Crash(&member);
  EXPECT_EQ(Statistics().delivered, 2 * keys.size());
  EXPECT_EQ(Statistics().returned, keys.size());
  EXPECT_EQ(Statistics().redelivered, keys.size());
}

// A commit may end between the two changes that tell an event again.
TEST_F(GroupsToldAgainTest, HalfOfWhatIsToldOfAnEventTakesNothingFromIt) {
  Create();
  Die({"a"});
  auto member = Join();
  Take(member.get());
  ASSERT_TRUE(Nack("a", 1, 0).ok());
  Take(member.get());
  // Returned.
  member = Join();
  journaled_.Commit();
  journaled_.KeepOnly(
      [](const GroupChange& change) { return change.kind != Kind::kPast; });
  ConsumerGroups::WalkPosition place;
  groups().AppendAgain(1, 1 << 20, &place);
  journaled_.Commit();
  Crash(&member);
  member = Join();
  const EventChunk chunk = member->Take(now_us_);
  ASSERT_THAT(Given(chunk), ElementsAre("a#2"));
  EXPECT_EQ(chunk.deliveries[0].returns, 1);
}

TEST_F(GroupsToldAgainTest, TellingAgainChangesNothingOfWhatIsKnown) {
  Create();
  auto member = Join();
  Die({"a", "b", "c"});
  Take(member.get());
  ASSERT_TRUE(Nack("a", 1, 600 * kSecond).ok());
  // Half of a walk, then a crash: all from before is still there.
  ConsumerGroups::WalkPosition place;
  EXPECT_TRUE(groups().AppendAgain(2, 1 << 20, &place));
  ASSERT_TRUE(Ack("b").ok());
  journaled_.Commit();
  Crash(&member);
  EXPECT_EQ(Statistics().backlog, 2u);
  EXPECT_EQ(Statistics().acked, 1u);
  EXPECT_EQ(Statistics().delivered, 2u);
  EXPECT_EQ(Statistics().lost, 0u);
}

}  // namespace
}  // namespace timecache::server

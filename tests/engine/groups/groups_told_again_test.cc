// Groups that are made again from a journal without its beginning, behind which
// they were told again.

#include <cstdint>
#include <map>
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
};

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

// The walk tells of them behind one that expires meanwhile.
TEST_F(GroupsToldAgainTest, GroupsThatExpiredStayInTheirOrder) {
  const auto expire = [this](const std::string& name) {
    GroupOptions options;
    options.unused_ttl_us = kMinUnusedTtlUs;
    ASSERT_TRUE(
        groups().Create(name, options, ExpiryLog::Start::kNow, now_us_).ok());
    Pass(2 * kMinUnusedTtlUs);
  };
  const auto names = [this] {
    std::vector<std::string> all;
    for (const auto& group : groups().LastExpired(10)) {
      all.push_back(group.name);
    }
    return all;
  };
  expire("0");
  std::vector<std::string> expected = {"0"};
  while (journaled_.StepTrim(now_us_, 10)) {
    expected.push_back(absl::StrCat(expected.size()));
    expire(expected.back());
  }
  ASSERT_GT(expected.size(), 3u);
  ASSERT_EQ(names(), expected);
  journaled_.Crash(now_us_);
  EXPECT_EQ(names(), expected);
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
  for (const std::string& key : keys) unsettled[events_.at(key).event_id] = key;
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

}  // namespace
}  // namespace timecache::server

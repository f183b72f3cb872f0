// What the groups of one namespace may keep together, and how long those that
// nobody serves stay.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/groups/consumer_groups.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "tests/support/engine/group_harness.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Start = ExpiryLog::Start;

constexpr int64_t kLifeMiB = 1 << 20;
constexpr int64_t kDay = 86'400 * kSecond;

NamespaceOptions LifeOptions() {
  NamespaceOptions options = WithBuckets(10 * kSecond, 11);
  options.num_shards = 1;
  return options;
}

class GroupLifeTest : public testing::Test {
 protected:
  explicit GroupLifeTest(const NamespaceOptions& options = LifeOptions())
      : map_(*registry_.Create("map", options)) {}

  ConsumerGroups& groups() { return map_->groups(); }
  int64_t now_us() const { return clock_.NowUs(); }
  void Pass(int64_t step_us) {
    clock_.AdvanceBy(step_us);
    reaper_.Flush();
  }
  // So many events die, in batches of ten.
  void Die(int count, size_t value_bytes = 1) {
    const std::string value(value_bytes, 'v');
    for (int i = 0; i < count; ++i) {
      const absl::Status status =
          map_->Apply(Operation::Put(absl::StrCat("key", died_++), value),
                      now_us())
              .status;
      EXPECT_TRUE(status.ok()) << status;
      if (i % 10 == 9) Pass(11 * kSecond);
    }
    Pass(11 * kSecond);
  }
  std::shared_ptr<ConsumerGroup> Use(const std::string& name,
                                     Start start = Start::kNow) {
    const auto group = groups().FindOrCreate(name, start, now_us(), "alice");
    EXPECT_TRUE(group.ok()) << group.status();
    return *group;
  }
  NamespaceStatistics Statistics() { return map_->GetStatistics(now_us()); }

  ManualClock clock_{kStartUs};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  const std::shared_ptr<TimeCacheMap> map_;
  int died_ = 0;
};

// --- The namespace's budget.

TEST(BacklogLimitTest, IsWhatTheNamespaceMayHoldUnlessItIsSet) {
  NamespaceOptions options;
  EXPECT_EQ(BacklogLimitBytes(options), 256 * kLifeMiB);
  options.max_bytes = 8 * kLifeMiB;
  options.retention_bytes = kLifeMiB;
  EXPECT_EQ(BacklogLimitBytes(options), 9 * kLifeMiB);
  options.max_bytes = INT64_MAX;
  EXPECT_GT(BacklogLimitBytes(options), 0);
  options.max_backlog_bytes = 3 * kLifeMiB;
  EXPECT_EQ(BacklogLimitBytes(options), 3 * kLifeMiB);
}

TEST(BacklogLimitTest, HasARangeThatItsErrorNames) {
  NamespaceOptions options;
  for (const int64_t bytes : {kMinBacklogBytes - 1, kMaxBacklogBytes + 1}) {
    options.max_backlog_bytes = bytes;
    EXPECT_EQ(FieldOf(Validate(options)), "max_backlog_bytes");
  }
  options.max_backlog_bytes = 0;
  options.unused_group_ttl_us = kMinUnusedTtlUs - 1;
  EXPECT_EQ(FieldOf(Validate(options)), "unused_group_ttl");
  options.unused_group_ttl_us = 0;
  EXPECT_TRUE(Validate(options).ok());
  GroupOptions group;
  group.unused_ttl_us = -1;
  EXPECT_EQ(FieldOf(Validate(group)), "unused_ttl");
}

class GroupBudgetTest : public GroupLifeTest {
 protected:
  static NamespaceOptions Small() {
    NamespaceOptions options = LifeOptions();
    options.retention_us = 0;
    options.max_backlog_bytes = 2 * kLifeMiB;
    return options;
  }
  GroupBudgetTest() : GroupLifeTest(Small()) {}
};

TEST_F(GroupBudgetTest, AbandonedGroupsKeepNoMoreThanTheirNamespaceMay) {
  const auto one = Use("one");
  const auto two = Use("two");
  Die(1'000, 10'000);
  // Batches are shared, and count once.
  EXPECT_LE(Statistics().backlog_bytes, 2 * kLifeMiB);
  EXPECT_GT(Statistics().backlog_bytes, 3 * kLifeMiB / 2);
  for (const auto& group : {one, two}) {
    const GroupStatistics statistics = group->GetStatistics();
    EXPECT_GT(statistics.backlog_bytes, kLifeMiB);
    EXPECT_EQ(statistics.lost + statistics.backlog, 1'000u);
    EXPECT_GT(statistics.lost, 0u);
  }
}

TEST_F(GroupBudgetTest, AGroupThatKeepsUpLosesNothingToOthersThatDoNot) {
  const auto idle = Use("idle");
  const auto busy = Use("busy");
  TestMember worker(busy.get(), 1'000);
  uint64_t settled = 0;
  for (int round = 0; round < 20; ++round) {
    Die(50, 10'000);
    for (EventChunk chunk;
         !(chunk = worker.Take(now_us())).deliveries.empty();) {
      for (const Delivery& delivery : chunk.deliveries) {
        const Settlement ack = SettlementOf(delivery);
        SettleResult result;
        busy->Settle({&ack, 1}, now_us(), {&result, 1});
        settled += result.status.ok() ? 1 : 0;
      }
    }
  }
  EXPECT_EQ(settled, 1'000u);
  EXPECT_EQ(busy->GetStatistics().lost, 0u);
  EXPECT_GT(idle->GetStatistics().lost, 0u);
}

// One that holds all that members may keeps the others from nothing.
TEST_F(GroupBudgetTest, WhatOneGroupsMembersHoldLeavesTheOthersTheirShare) {
  const auto hoard = Use("hoard");
  const auto other = Use("other");
  TestMember hoarder(hoard.get(), 65'536);
  TestMember worker(other.get(), 65'536);
  Die(150, 10'000);
  hoarder.Take(now_us(), 65'536);
  EXPECT_GE(hoard->GetStatistics().in_flight_bytes, kLifeMiB);
  EXPECT_LE(hoard->GetStatistics().in_flight_bytes, kLifeMiB + 20'000);
  worker.Take(now_us(), 65'536);
  EXPECT_GE(other->GetStatistics().in_flight_bytes, kLifeMiB / 2);
  EXPECT_LE(other->GetStatistics().in_flight_bytes, kLifeMiB / 2 + 20'000);
}

// --- Unused groups.

TEST_F(GroupLifeTest, AGroupMadeByUseGoesWhenItIsUnused) {
  auto group = Use("workers");
  EXPECT_EQ(group->options().unused_ttl_us, 7 * kDay);
  EXPECT_EQ(group->created_by(), "alice");
  TestMember member(group.get(), 10);
  // As long as it has a member it stays.
  Pass(30 * kDay);
  EXPECT_TRUE(groups().Find("workers").ok());
  member.Leave();
  reaper_.Flush();
  EXPECT_EQ(group->GetStatistics().unused_since_us, now_us());
  Pass(7 * kDay - 1);
  EXPECT_TRUE(groups().Find("workers").ok());
  Pass(1);
  EXPECT_EQ(ReasonOf(groups().Find("workers").status()),
            Reason::kGroupNotFound);
  EXPECT_EQ(groups().expired(), 1u);
  EXPECT_EQ(Statistics().groups_expired, 1u);
  EXPECT_EQ(Statistics().backlog_bytes, 0);
}

TEST_F(GroupLifeTest, AGroupThatWasCreatedStays) {
  ASSERT_TRUE(
      groups().Create("made", GroupOptions(), Start::kNow, now_us()).ok());
  Pass(365 * kDay);
  EXPECT_TRUE(groups().Find("made").ok());
  // One that was made by use does, too, once that is said.
  Use("workers");
  ASSERT_TRUE(groups()
                  .Update("workers",
                          [](GroupOptions* options) {
                            options->unused_ttl_us = 0;
                            return absl::OkStatus();
                          })
                  .ok());
  Pass(365 * kDay);
  EXPECT_TRUE(groups().Find("workers").ok());
  // And goes when the option says so.
  ASSERT_TRUE(groups()
                  .Update("made",
                          [](GroupOptions* options) {
                            options->unused_ttl_us = kDay;
                            return absl::OkStatus();
                          })
                  .ok());
  Pass(kDay);
  EXPECT_FALSE(groups().Find("made").ok());
}

TEST_F(GroupLifeTest, OneThatComesBackAfterwardsIsToldWhatIsLost) {
  {
    const auto group = Use("workers");
    TestMember member(group.get(), 10);
  }
  Die(30);
  Pass(7 * kDay);
  ASSERT_FALSE(groups().Find("workers").ok());
  // It could not have had these, either.
  Die(5);
  const auto expired = groups().LastExpired(10);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].name, "workers");
  EXPECT_EQ(expired[0].unsettled, 30u);
  const auto again = Use("workers");
  TestMember member(again.get(), 10);
  const EventChunk chunk = member.Take(now_us());
  EXPECT_THAT(chunk.deliveries, IsEmpty());
  EXPECT_EQ(chunk.lost, 35u);
  const GroupStatistics statistics = again->GetStatistics();
  EXPECT_EQ(statistics.lost, 35u);
  EXPECT_EQ(statistics.events, Sum(statistics));
  // Once.
  Die(1);
  EXPECT_EQ(member.Take(now_us()).lost, 0u);
}

TEST_F(GroupLifeTest, ADeletedGroupLeavesNothingToItsSuccessor) {
  Use("workers");
  Die(3);
  ASSERT_TRUE(groups().Delete("workers").ok());
  TestMember member(Use("workers").get(), 10);
  EXPECT_EQ(member.Take(now_us()).lost, 0u);
}

}  // namespace
}  // namespace timecache::server

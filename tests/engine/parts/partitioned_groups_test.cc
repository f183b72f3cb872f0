// Groups of a namespace of several partitions, as operators use them.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/engine/parts/parts_harness.h"

namespace timecache::server {
namespace {

using ::testing::SizeIs;

class PartitionedGroupsTest : public testing::Test {
 protected:
  static constexpr int kPartitions = 4;

  absl::StatusOr<GroupInfo> Create(const NewGroup& group = {}) {
    return Inline<GroupInfo>([&](auto done) {
      parts_.store().CreateGroup(PartsHarness::kGroupName, group,
                                 std::move(done));
    });
  }
  absl::StatusOr<GroupInfo> Get() {
    return Inline<GroupInfo>([&](auto done) {
      parts_.store().GetGroup(PartsHarness::kGroupName,
                              /*include_statistics=*/true, std::move(done));
    });
  }
  absl::Status Delete() {
    return InlineStatus([&](auto done) {
      parts_.store().DeleteGroup(PartsHarness::kGroupName, std::move(done));
    });
  }
  absl::StatusOr<SeekResult> Seek(const LogPosition& position,
                                  bool drop = false) {
    return Inline<SeekResult>([&](auto done) {
      parts_.store().SeekGroup(PartsHarness::kGroupName, position, drop,
                               std::move(done));
    });
  }
  absl::StatusOr<UnsettledPage> List(const UnsettledQuery& query) {
    return Inline<UnsettledPage>([&](auto done) {
      parts_.store().ListUnsettled(PartsHarness::kGroupName, query,
                                   std::move(done));
    });
  }
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> Part(int partition) {
    return parts_.map(partition).groups().Find(PartsHarness::kGroup);
  }
  int PartsThere() {
    int there = 0;
    for (int i = 0; i < kPartitions; ++i) there += Part(i).ok() ? 1 : 0;
    return there;
  }
  void Kill(int events, absl::string_view value = "v") {
    for (int i = 0; i < events; ++i) {
      parts_.Put(absl::StrCat("key-", ++keys_), value, kSecond);
    }
    parts_.Pass(3 * kSecond);
  }

  PartsHarness parts_{kPartitions};
  int keys_ = 0;
};

TEST_F(PartitionedGroupsTest, IsMadeChangedAndDeletedInAllPartitions) {
  const auto made = Create(GroupWith({.max_attempts = 7}, {}, "a"));
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->namespace_name, PartsHarness::kName);
  EXPECT_EQ(PartsThere(), kPartitions);
  EXPECT_EQ(ReasonOf(Create().status()), Reason::kGroupExists);
  EXPECT_EQ(PartsThere(), kPartitions);
  const auto updated = Inline<GroupInfo>([&](auto done) {
    parts_.store().UpdateGroup(
        PartsHarness::kGroupName,
        [](GroupOptions* options) {
          options->max_attempts = 9;
          return absl::OkStatus();
        },
        std::move(done));
  });
  ASSERT_TRUE(updated.ok()) << updated.status();
  for (int i = 0; i < kPartitions; ++i) {
    EXPECT_EQ((*Part(i))->options().max_attempts, 9);
    EXPECT_EQ((*Part(i))->created_by(), "a");
  }
  EXPECT_TRUE(Delete().ok());
  EXPECT_EQ(PartsThere(), 0);
  EXPECT_EQ(ReasonOf(Delete()), Reason::kGroupNotFound);
  EXPECT_EQ(ReasonOf(Get().status()), Reason::kGroupNotFound);
}

TEST_F(PartitionedGroupsTest, IsMadeInAllPartitionsOrInNone) {
  for (size_t i = 0; i < ConsumerGroups::kMaxGroups; ++i) {
    ASSERT_TRUE(
        parts_.map(2)
            .groups()
            .Create(absl::StrCat("g", i), {}, LogStart::kNow, parts_.now_us())
            .ok());
  }
  EXPECT_EQ(ReasonOf(Create().status()), Reason::kMaxGroups);
  EXPECT_EQ(PartsThere(), 0);
  EXPECT_EQ(FieldOf(Create(GroupWith({.max_attempts = 0})).status()),
            "max_attempts");
  EXPECT_EQ(PartsThere(), 0);
}

TEST_F(PartitionedGroupsTest, WhatAnInterruptedDeletionLeftIsNoGroup) {
  ASSERT_TRUE(Create(GroupWith({.max_attempts = 7})).ok());
  Kill(20);
  ASSERT_TRUE(parts_.map(0).groups().Delete(PartsHarness::kGroup).ok());
  EXPECT_EQ(ReasonOf(Get().status()), Reason::kGroupNotFound);
  ASSERT_TRUE(Create().ok());
  const auto info = Get();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->options.max_attempts, GroupOptions().max_attempts);
  EXPECT_EQ(info->statistics->backlog, 0u);
  EXPECT_EQ(PartsThere(), kPartitions);
}

TEST_F(PartitionedGroupsTest, AJoinMakesThePartsThatAreMissing) {
  ASSERT_TRUE(Create(GroupWith({.max_attempts = 7})).ok());
  ASSERT_TRUE(parts_.map(3).groups().Delete(PartsHarness::kGroup).ok());
  ASSERT_TRUE(Get().ok());
  TestReader member = parts_.Join(PartsHarness::kGroup, 10);
  ASSERT_TRUE(member.status().ok()) << member.status();
  EXPECT_EQ((*Part(3))->options().max_attempts, 7);
}

TEST_F(PartitionedGroupsTest, StatisticsAreSums) {
  ASSERT_TRUE(Create().ok());
  Kill(50);
  const auto info = Get();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->statistics->backlog, 50u);
  EXPECT_EQ(info->statistics->events, 50u);
  ListQuery query;
  query.include_statistics = true;
  const auto page = Inline<Page<GroupInfo>>([&](auto done) {
    parts_.store().ListGroups(PartsHarness::kName, query, std::move(done));
  });
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_THAT(page->items, SizeIs(1));
  EXPECT_EQ(page->items[0].statistics->backlog, 50u);
}

TEST_F(PartitionedGroupsTest, SeeksToThePointsOfAMessage) {
  TestReader watch = parts_.OpenLog();
  Kill(10);
  const std::vector<LogPoint> points =
      watch->Read(parts_.now_us(), 8192, kMessageBytes).points;
  Kill(30);
  ASSERT_TRUE(Create().ok());
  EXPECT_EQ(Seek(LogPosition::At(points))->unsettled, 30u);
  EXPECT_EQ(Seek(LogStart::kEarliest)->unsettled, 40u);
  EXPECT_EQ(Seek(LogStart::kNow, /*drop=*/true)->dropped, 40u);
  EXPECT_EQ(ReasonOf(Seek(LogPosition::At(points[0])).status()),
            Reason::kLogChanged);
  ASSERT_TRUE(Delete().ok());
  EXPECT_EQ(
      ReasonOf(Create(GroupWith({}, LogPosition::At({points[0], points[1]})))
                   .status()),
      Reason::kLogChanged);
  ASSERT_TRUE(Create(GroupWith({}, LogPosition::At(points))).ok());
  EXPECT_EQ(Get()->statistics->backlog, 30u);
}

TEST_F(PartitionedGroupsTest, PagesOfUnsettledEventsWalkThePartitions) {
  ASSERT_TRUE(Create().ok());
  Kill(100);
  for (const int most : {1, 7, 30, 1000}) {
    for (const char* prefix : {"", "key-1"}) {
      UnsettledQuery query = {.key_prefix = prefix, .most = most};
      std::set<std::string> keys;
      std::vector<Settlement> settlements;
      for (int pages = 0; pages < 200; ++pages) {
        const auto page = List(query);
        ASSERT_TRUE(page.ok()) << page.status();
        ASSERT_LE(page->events.size(), static_cast<size_t>(most));
        for (const UnsettledInfo& event : page->events) {
          const std::string key(event.delivery.event().key);
          EXPECT_TRUE(keys.insert(key).second) << key;
          EXPECT_EQ(event.delivery.partition, parts_.PartitionOf(key));
        }
        if (!page->next.has_value()) break;
        query.from = *page->next;
        query.partition = page->next_partition;
      }
      // key-1, key-10 to key-19 and key-100.
      EXPECT_THAT(keys, SizeIs(*prefix == '\0' ? 100u : 12u));
    }
  }
  EXPECT_EQ(FieldOf(List({.partition = kPartitions}).status()), "page_token");
}

TEST_F(PartitionedGroupsTest, APageEndsAtItsBytes) {
  ASSERT_TRUE(Create().ok());
  Kill(8, std::string(400'000, 'v'));
  UnsettledQuery query = {.most = 1000, .include_values = true};
  size_t events = 0;
  for (bool more = true; more;) {
    const auto page = List(query);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LE(page->events.size(), 2u);
    events += page->events.size();
    more = page->next.has_value();
    query.from = page->next.value_or(0);
    query.partition = page->next_partition;
  }
  EXPECT_EQ(events, 8u);
}

TEST_F(PartitionedGroupsTest, ResultsAreInTheOrderOfTheSettlements) {
  TestReader member = parts_.Join(PartsHarness::kGroup, 100);
  Kill(30);
  std::vector<Settlement> settlements;
  for (const Delivery& each :
       member->Read(parts_.now_us(), 8192, kMessageBytes).deliveries) {
    settlements.push_back({.event_id = each.event_id,
                           .attempt = each.attempt,
                           .returns = each.returns,
                           .group_id = each.group_id,
                           .partition = each.partition});
    // Every third one is of another partition, or of one that is not there.
    if (settlements.size() % 3 == 0) settlements.back().partition ^= 1;
    if (settlements.size() % 9 == 0) settlements.back().partition = 63;
  }
  ASSERT_THAT(settlements, SizeIs(30));
  std::vector<SettleResult> results(30);
  EXPECT_TRUE(InlineStatus([&](auto done) {
                parts_.store().Settle(PartsHarness::kGroupName, settlements,
                                      absl::MakeSpan(results), std::move(done));
              }).ok());
  for (size_t i = 0; i < 30; ++i) {
    if (i % 3 == 2) {
      EXPECT_EQ(ReasonOf(results[i].status), Reason::kStaleAttempt) << i;
    } else {
      EXPECT_TRUE(results[i].status.ok()) << results[i].status;
    }
  }
  EXPECT_EQ(Get()->statistics->acked, 20u);
  ASSERT_TRUE(Delete().ok());
  EXPECT_EQ(ReasonOf(InlineStatus([&](auto done) {
              parts_.store().Settle(PartsHarness::kGroupName, settlements,
                                    absl::MakeSpan(results), std::move(done));
            })),
            Reason::kGroupNotFound);
}

TEST_F(PartitionedGroupsTest, WorksOnMapsThatAnswerLater) {
  Store& store = parts_.late_store();
  const GroupName name = PartsHarness::kGroupName;
  const auto made = Later<GroupInfo>([&](auto done) {
    store.CreateGroup(name, GroupWith({.single_active = true}),
                      std::move(done));
  });
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(PartsThere(), kPartitions);
  Kill(40);
  // Joins at once, in one order in all partitions.
  const std::vector<std::string> names = {PartsHarness::kName};
  constexpr size_t kMembers = 5;
  Membership membership;
  membership.group = PartsHarness::kGroup;
  std::vector<Store::Readers> members(kMembers);
  absl::BlockingCounter joined(kMembers);
  for (Store::Readers& member : members) {
    store.JoinGroups(
        names, membership, [] {},
        [&](absl::StatusOr<Store::Readers> readers) {
          if (readers.ok()) member = *std::move(readers);
          joined.DecrementCount();
        });
  }
  joined.Wait();
  std::vector<Settlement> settlements;
  for (const Store::Readers& member : members) {
    ASSERT_THAT(member, SizeIs(1));
    const size_t before = settlements.size();
    for (bool more = true; more;) {
      const EventChunk chunk =
          member.front()->Read(parts_.now_us(), 8192, kMessageBytes);
      for (const Delivery& each : chunk.deliveries) {
        settlements.push_back({.event_id = each.event_id,
                               .attempt = each.attempt,
                               .group_id = each.group_id,
                               .partition = each.partition});
      }
      more = chunk.more;
    }
    EXPECT_TRUE(settlements.size() == before || before == 0);
  }
  ASSERT_THAT(settlements, SizeIs(40));
  std::vector<SettleResult> results(40);
  const auto settled = Later<int>([&](auto done) {
    store.Settle(name, settlements, absl::MakeSpan(results),
                 [done = std::move(done)](const absl::Status& status) mutable {
                   EXPECT_TRUE(status.ok()) << status;
                   done(0);
                 });
  });
  EXPECT_TRUE(settled.ok());
  EXPECT_EQ(Get()->statistics->acked, 40u);
  const auto moved = Later<SeekResult>([&](auto done) {
    store.SeekGroup(name, LogStart::kEarliest, false, std::move(done));
  });
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->unsettled, 40u);
  const auto page = Later<UnsettledPage>([&](auto done) {
    store.ListUnsettled(name, UnsettledQuery(), std::move(done));
  });
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->events, SizeIs(40));
}

TEST_F(PartitionedGroupsTest, OneNamespaceThatIsNotThereLeavesNoGroup) {
  const std::vector<std::string> names = {PartsHarness::kName, "missing"};
  Membership membership;
  membership.group = PartsHarness::kGroup;
  const TestReader member([&](auto wake, auto done) {
    parts_.store().JoinGroups(names, membership, wake, std::move(done));
  });
  EXPECT_EQ(ReasonOf(member.status()), Reason::kNamespaceNotFound);
  EXPECT_EQ(PartsThere(), 0);
}

}  // namespace
}  // namespace timecache::server

#include "server/engine/groups/consumer_groups.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/registry.h"
#include "tests/support/engine/group_harness.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Start = ExpiryLog::Start;

// Buckets of a second: what is put at a whole second with the default TTL dies
// ten seconds later.
NamespaceOptions Options() { return WithBuckets(10 * kSecond, 11); }

class ConsumerGroupsTest : public testing::Test {
 protected:
  ConsumerGroups& groups() { return harness_.map().groups(); }
  int64_t now_us() const { return harness_.now_us(); }

  std::shared_ptr<ConsumerGroup> Create(
      const GroupOptions& options = GroupOptions(), Start start = Start::kNow) {
    auto group = groups().Create("workers", options, start, now_us());
    EXPECT_TRUE(group.ok()) << group.status();
    return *group;
  }

  MapHarness harness_{Options()};
};

TEST_F(ConsumerGroupsTest, IsMadeAtFirstUse) {
  const auto made = groups().FindOrCreate("workers", Start::kNow, now_us());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->name(), "workers");
  EXPECT_EQ((*made)->options().ack_timeout_us, 30 * kSecond);
  const auto found = groups().FindOrCreate("workers", Start::kNow, now_us());
  EXPECT_EQ(*found, *made);
  EXPECT_EQ(*groups().Find("workers"), *made);
}

TEST_F(ConsumerGroupsTest, ANameIsTakenOnce) {
  Create();
  const absl::Status status =
      groups()
          .Create("workers", GroupOptions(), Start::kNow, now_us())
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(status), Reason::kGroupExists);
}

TEST_F(ConsumerGroupsTest, RefusesNamesAndOptionsThatNoGroupCanHave) {
  for (const char* const name : {"", "-", "Workers", "a_b"}) {
    EXPECT_EQ(FieldOf(groups()
                          .Create(name, GroupOptions(), Start::kNow, now_us())
                          .status()),
              "group");
    EXPECT_EQ(
        FieldOf(groups().FindOrCreate(name, Start::kNow, now_us()).status()),
        "group");
    EXPECT_EQ(FieldOf(groups().Find(name).status()), "group");
  }
  GroupOptions options;
  options.max_attempts = 0;
  EXPECT_EQ(
      FieldOf(
          groups().Create("workers", options, Start::kNow, now_us()).status()),
      "max_attempts");
  EXPECT_THAT(groups().List(), IsEmpty());
}

TEST_F(ConsumerGroupsTest, MakesNoMoreThanItsLimit) {
  for (size_t i = 0; i < ConsumerGroups::kMaxGroups; ++i) {
    ASSERT_TRUE(groups()
                    .FindOrCreate(absl::StrCat("g", i), Start::kNow, now_us())
                    .ok());
  }
  const absl::Status status =
      groups().FindOrCreate("more", Start::kNow, now_us()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), Reason::kMaxGroups);
  ASSERT_TRUE(groups().Delete("g0").ok());
  EXPECT_TRUE(groups().FindOrCreate("more", Start::kNow, now_us()).ok());
}

TEST_F(ConsumerGroupsTest, ListsByName) {
  for (const char* const name : {"b", "c", "a"}) {
    ASSERT_TRUE(groups().FindOrCreate(name, Start::kNow, now_us()).ok());
  }
  std::vector<std::string> names;
  for (const auto& group : groups().List()) names.push_back(group->name());
  EXPECT_THAT(names, ElementsAre("a", "b", "c"));
}

TEST_F(ConsumerGroupsTest, ChangesOptionsOrLeavesThemAsTheyWere) {
  Create();
  const auto updated = groups().Update("workers", [](GroupOptions* options) {
    options->max_attempts = 9;
    return absl::OkStatus();
  });
  ASSERT_TRUE(updated.ok()) << updated.status();
  EXPECT_EQ((*updated)->options().max_attempts, 9);
  EXPECT_EQ(FieldOf(groups()
                        .Update("workers",
                                [](GroupOptions* options) {
                                  options->ack_timeout_us = 1;
                                  return absl::OkStatus();
                                })
                        .status()),
            "ack_timeout");
  EXPECT_EQ((*updated)->options().ack_timeout_us, 30 * kSecond);
}

TEST_F(ConsumerGroupsTest, NamesTheGroupThatIsNotThere) {
  std::vector<SettleResult> results;
  for (const absl::Status& status :
       {groups().Find("workers").status(), groups().Delete("workers"),
        groups()
            .Update("workers", [](GroupOptions*) { return absl::OkStatus(); })
            .status(),
        groups().Settle("workers", {}, now_us(), absl::MakeSpan(results))}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    EXPECT_EQ(ReasonOf(status), Reason::kGroupNotFound);
  }
}

TEST_F(ConsumerGroupsTest, LetsTimeOutsHappenOnTheReapersThread) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  Registry registry(&clock, &reaper, RegistryLimits());
  const auto map = *registry.Create("map", Options());
  const auto group =
      *map->groups().FindOrCreate("workers", Start::kNow, clock.NowUs());
  TestMember member(group.get(), 10);
  map->Apply(Operation::Put("a", "1"), clock.NowUs());
  clock.AdvanceBy(11 * kSecond);
  reaper.Flush();
  EXPECT_THAT(Given(member.Take(clock.NowUs())), ElementsAre("a#1"));
  clock.AdvanceBy(30 * kSecond);
  reaper.Flush();
  EXPECT_EQ(group->GetStatistics().timed_out, 1u);
  TestMember other(group.get(), 10);
  EXPECT_THAT(Given(other.Take(clock.NowUs())), ElementsAre("a#2"));
}

// --- Dead letters.

class DeadLetterTest : public testing::Test {
 protected:
  DeadLetterTest() {
    NamespaceOptions options = Options();
    options.dead_letter_namespace = "dead";
    map_ = *registry_.Create("work", options);
    GroupOptions group_options;
    group_options.max_attempts = 1;
    group_options.ack_timeout_us = kSecond;
    group_ = *map_->groups().Create("g", group_options, Start::kNow,
                                    clock_.NowUs(), "maker");
    member_ = std::make_unique<TestMember>(group_.get(), 10);
    map_->Apply(Operation::Put("a", "1"), clock_.NowUs());
    Pass(11 * kSecond);
    const EventChunk chunk = member_->Take(clock_.NowUs());
    EXPECT_THAT(Given(chunk), ElementsAre("a#1"));
    event_id_ = chunk.deliveries.at(0).event_id;
  }

  void Pass(int64_t step_us) {
    clock_.AdvanceBy(step_us);
    reaper_.Flush();
  }

  ManualClock clock_{kStartUs};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  std::shared_ptr<TimeCacheMap> map_;
  std::shared_ptr<ConsumerGroup> group_;
  std::unique_ptr<TestMember> member_;
  // A registry numbers each log's events from elsewhere.
  uint64_t event_id_ = 0;
};

TEST_F(DeadLetterTest, GoesIntoTheNamespaceThatTheOptionsName) {
  const auto dead = *registry_.Create("dead", Options());
  Pass(kSecond);
  const std::string key = absl::StrCat("work/g/", event_id_);
  const Result got = dead->Apply(Operation::Get(key), clock_.NowUs());
  ASSERT_TRUE(got.has_entry);
  EXPECT_THAT(got.entry.value, testing::HasSubstr("\x12\x01"
                                                  "a\x1a\x01"
                                                  "1"));
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 1);
  EXPECT_EQ(group_->GetStatistics().dead_lettered, 1u);
  EXPECT_EQ(group_->GetStatistics().backlog, 0u);
}

// The right is asked at each letter, of who made the group: it may have been
// withdrawn since the namespace was named, or the name be another's.
TEST_F(DeadLetterTest, StaysWhileWhoMadeTheGroupMayNotPutIt) {
  bool allowed = false;
  std::string asked;
  registry_.SetDeadLetterRight(
      [&](absl::string_view principal, absl::string_view name) {
        asked = absl::StrCat(principal, " in ", name);
        return allowed ? absl::OkStatus() : absl::PermissionDeniedError("no");
      });
  const auto dead = *registry_.Create("dead", Options());
  Pass(kSecond);
  EXPECT_EQ(asked, "maker in dead");
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 0);
  GroupStatistics statistics = group_->GetStatistics();
  EXPECT_EQ(statistics.dead_letters_denied, 1u);
  EXPECT_EQ(statistics.dead_letter_failures, 1u);
  EXPECT_EQ(statistics.backlog, 1u);
  EXPECT_EQ(statistics.lost, 0u);
  allowed = true;
  Pass(kSecond);
  statistics = group_->GetStatistics();
  EXPECT_EQ(statistics.dead_lettered, 1u);
  EXPECT_EQ(statistics.dead_letters_denied, 1u);
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 1);
}

TEST_F(DeadLetterTest, WaitsForItsNamespaceToBeMade) {
  Pass(kSecond);
  EXPECT_EQ(group_->GetStatistics().dead_letter_failures, 1u);
  EXPECT_EQ(group_->GetStatistics().backlog, 1u);
  const auto dead = *registry_.Create("dead", Options());
  Pass(kSecond - 1);
  EXPECT_EQ(group_->GetStatistics().dead_letter_failures, 1u);
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 0);
  Pass(1);
  EXPECT_EQ(group_->GetStatistics().dead_lettered, 1u);
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 1);
}

// The event's value is as large as that namespace takes; its key and times come
// on top.
TEST_F(DeadLetterTest, IsNotHeldToTheLargestValueOfItsNamespace) {
  NamespaceOptions options = Options();
  options.max_value_bytes = 1;
  const auto dead = *registry_.Create("dead", options);
  Pass(kSecond);
  EXPECT_EQ(group_->GetStatistics().dead_lettered, 1u);
  const std::string key = absl::StrCat("work/g/", event_id_);
  EXPECT_TRUE(dead->Apply(Operation::Get(key), clock_.NowUs()).has_entry);
  EXPECT_EQ(
      FieldOf(dead->Apply(Operation::Put("k", "22"), clock_.NowUs()).status),
      "value");
}

TEST_F(DeadLetterTest, WaitsForRoomInItsNamespace) {
  NamespaceOptions options = Options();
  options.max_entries = 1;
  const auto dead = *registry_.Create("dead", options);
  dead->Apply(Operation::Put("k", ""), clock_.NowUs());
  Pass(kSecond);
  EXPECT_EQ(group_->GetStatistics().dead_letter_failures, 1u);
  EXPECT_EQ(group_->GetStatistics().backlog, 1u);
  dead->Apply(Operation::Remove("k"), clock_.NowUs());
  Pass(kSecond);
  EXPECT_EQ(group_->GetStatistics().dead_lettered, 1u);
  EXPECT_EQ(group_->GetStatistics().lost, 0u);
}

TEST_F(DeadLetterTest, IsDroppedWhereAllOfItsNamespaceIsTooSmall) {
  NamespaceOptions options = Options();
  options.max_bytes = 10;
  const auto dead = *registry_.Create("dead", options);
  Pass(kSecond);
  EXPECT_EQ(group_->GetStatistics().dead_letters_dropped, 1u);
  EXPECT_EQ(group_->GetStatistics().lost, 1u);
  EXPECT_EQ(group_->GetStatistics().backlog, 0u);
  EXPECT_EQ(group_->NextDueUs(), kNeverUs);
  EXPECT_EQ(dead->GetSize(clock_.NowUs()).entries, 0);
  EXPECT_EQ(member_->Take(clock_.NowUs()).lost, 1u);
}

// What others hold of the server's bytes may go.
TEST(DeadLetterOfAFullServerTest, IsDroppedOnlyIfItIsLargerThanTheServer) {
  for (const int64_t max_bytes : {20, 200}) {
    ManualClock clock(kStartUs);
    Reaper reaper(&clock);
    RegistryLimits limits;
    limits.max_bytes = max_bytes;
    Registry registry(&clock, &reaper, limits);
    const auto other = *registry.Create("other", Options());
    const auto dead = *registry.Create("dead", Options());
    const std::string rest(static_cast<size_t>(max_bytes) - 1, 'v');
    other->Apply(Operation::Put("k", rest), clock.NowUs());
    const absl::Status status =
        dead->PutDeadLetter(std::string(20, 'k'), "value", clock.NowUs());
    if (max_bytes == 20) {
      EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    } else {
      EXPECT_EQ(ReasonOf(status), Reason::kServerMaxBytes) << status;
    }
  }
}

TEST_F(DeadLetterTest, IsGivenOutOnOnceTheOptionIsTakenAway) {
  Pass(kSecond);
  ASSERT_TRUE(registry_
                  .Update("work",
                          [](NamespaceOptions* options) {
                            options->dead_letter_namespace.clear();
                            return absl::OkStatus();
                          })
                  .ok());
  Pass(kSecond);
  TestMember other(group_.get(), 10);
  EXPECT_THAT(Given(other.Take(clock_.NowUs())), ElementsAre("a#2"));
}

TEST_F(DeadLetterTest, AllOfManyAreThereAfterOneFlush) {
  const auto dead = *registry_.Create("dead", Options());
  constexpr int kMany = 2 * ConsumerGroups::kMaxDeadLetters + 1;
  TestMember member(group_.get(), kMany);
  for (int i = 0; i < kMany; ++i) {
    map_->Apply(Operation::Put(absl::StrCat("k", i), "v"), clock_.NowUs());
  }
  Pass(11 * kSecond);
  member_->Leave();
  size_t taken = 0;
  for (bool more = true; more;) {
    const EventChunk chunk = member.Take(clock_.NowUs());
    taken += chunk.deliveries.size();
    more = chunk.more;
  }
  EXPECT_EQ(taken, static_cast<size_t>(kMany));
  Pass(kSecond);
  EXPECT_EQ(group_->GetStatistics().dead_lettered, kMany + 1u);
}

TEST_F(DeadLetterTest, RefusesTheNamespaceItselfAndNamesThatNoneCanHave) {
  NamespaceOptions options = Options();
  options.dead_letter_namespace = "self";
  EXPECT_EQ(FieldOf(registry_.Create("self", options).status()),
            "dead_letter_namespace");
  options.dead_letter_namespace = "No_Name";
  EXPECT_EQ(FieldOf(registry_.Create("self", options).status()),
            "dead_letter_namespace");
  EXPECT_EQ(FieldOf(registry_
                        .Update("work",
                                [](NamespaceOptions* to) {
                                  to->dead_letter_namespace = "work";
                                  return absl::OkStatus();
                                })
                        .status()),
            "dead_letter_namespace");
  EXPECT_EQ(map_->options().dead_letter_namespace, "dead");
}

}  // namespace
}  // namespace timecache::server

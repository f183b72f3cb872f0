// Consumer groups that are made again with their map are the same groups: what
// was settled stays settled, and all else is delivered again.

#include "server/engine/groups/groups_replay.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/support/engine/crash_world.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = GroupChange::Kind;
using Start = ExpiryLog::Start;

constexpr char kGroup[] = "workers";

MapOptions WithDeadLetters(MapOptions options) {
  options.dead_letter_map = "dead";
  return options;
}

class GroupsReplayTest : public ::testing::Test {
 protected:
  explicit GroupsReplayTest(
      const MapOptions& options = CrashOptions(10 * kSecond, 11))
      : journaled_(options, &log_) {}

  ConsumerGroups& groups() { return journaled_.groups(); }
  std::shared_ptr<ConsumerGroup> group() {
    const auto group = groups().Find(kGroup);
    EXPECT_TRUE(group.ok()) << group.status();
    return *group;
  }
  GroupStatistics Statistics() { return group()->GetStatistics(); }
  void Create(const GroupOptions& options = GroupOptions(),
              Start start = Start::kNow) {
    const auto group =
        groups().Create(kGroup, options, start, now_us_, "alice");
    ASSERT_TRUE(group.ok()) << group.status();
  }
  std::unique_ptr<TestMember> Join() {
    return std::make_unique<TestMember>(group().get(), 1000);
  }

  // All that is due by then happens, and is durable.
  void Pass(int64_t step_us) {
    now_us_ += step_us;
    journaled_.Settle(now_us_);
    journaled_.Commit();
  }
  void Die(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      ASSERT_TRUE(journaled_.map()
                      .Apply(Operation::Put(key, "value"), now_us_)
                      .status.ok());
    }
    Pass(20 * kSecond);
  }
  // Remembers the event of each key.
  std::vector<std::string> Take(TestMember* member) {
    const GroupChunk chunk = member->Take(now_us_);
    for (const Delivery& delivery : chunk.deliveries) {
      events_[std::string(delivery.event().key)] = delivery.event_id;
    }
    return Given(chunk);
  }
  SettleResult Settle(const Settlement& settlement) {
    SettleResult result;
    const absl::Status status = groups().Settle(
        kGroup, {&settlement, 1}, now_us_, absl::MakeSpan(&result, 1));
    EXPECT_TRUE(status.ok()) << status;
    return result;
  }
  absl::Status Ack(const std::string& key, int attempt = 1) {
    return Settle({events_.at(key), attempt, SettleAction::kAck, 0, 0}).status;
  }
  absl::Status Nack(const std::string& key, int attempt, int64_t delay_us) {
    return Settle({events_.at(key), attempt, SettleAction::kNack, delay_us, 0})
        .status;
  }
  // What was committed is left. What a member gives back because it must not
  // outlive its map is not.
  void Crash(std::unique_ptr<TestMember>* member) { CrashLater(member, 0); }
  void CrashLater(std::unique_ptr<TestMember>* member, int64_t later_us) {
    if (member != nullptr) member->reset();
    now_us_ += later_us;
    journaled_.Crash(now_us_);
  }
  // The changes of groups that were told since the last commit.
  std::vector<Kind> CommitKinds() {
    journaled_.Commit();
    std::vector<Kind> kinds;
    for (const KeptGroupChange& kept : log_.last().groups) {
      kinds.push_back(kept.change().kind);
    }
    return kinds;
  }

  int64_t now_us_ = kStartUs;
  MemoryCommitLog log_;
  JournaledMap journaled_;
  std::map<std::string, uint64_t> events_;
};

TEST_F(GroupsReplayTest, WhatWasSettledStaysSettledAndTheRestComesAgain) {
  Create();
  auto member = Join();
  Die({"a", "b", "c"});
  Take(member.get());
  ASSERT_TRUE(Ack("a").ok());
  journaled_.Commit();
  ASSERT_TRUE(Ack("b").ok());
  Crash(&member);
  member = Join();
  EXPECT_THAT(Take(member.get()), UnorderedElementsAre("b#1", "c#1"));
  EXPECT_EQ(Statistics().acked, 1u);
  EXPECT_EQ(Statistics().events, 3u);
  EXPECT_EQ(group()->created_by(), "alice");
}

// It can fail: without the changes that settle, all comes again.
TEST_F(GroupsReplayTest, WithoutTheChangesThatSettleAllComesAgain) {
  journaled_.KeepOnly(
      [](const GroupChange& change) { return !change.settles(); });
  Create();
  auto member = Join();
  Die({"a", "b"});
  Take(member.get());
  ASSERT_TRUE(Ack("a").ok());
  journaled_.Commit();
  Crash(&member);
  member = Join();
  EXPECT_THAT(Take(member.get()), UnorderedElementsAre("a#1", "b#1"));
}

TEST_F(GroupsReplayTest, AttemptsThatEndedCountAndTheOneInFlightDoesNot) {
  Create(WithAckTimeout(10 * kSecond));
  auto member = Join();
  Die({"a", "b", "c"});
  Take(member.get());
  ASSERT_TRUE(Nack("a", 1, 0).ok());
  Pass(10 * kSecond);
  // Two have timed out, so their member may hold less now.
  member = Join();
  EXPECT_THAT(Take(member.get()), UnorderedElementsAre("a#2", "b#2", "c#2"));
  journaled_.Commit();
  Crash(&member);
  const GroupStatistics statistics = Statistics();
  EXPECT_EQ(statistics.delivered, 3u);
  EXPECT_EQ(statistics.redelivered, 0u);
  EXPECT_EQ(statistics.nacked, 1u);
  EXPECT_EQ(statistics.timed_out, 2u);
  EXPECT_EQ(statistics.in_flight, 0u);
  member = Join();
  EXPECT_THAT(Take(member.get()), UnorderedElementsAre("a#2", "b#2", "c#2"));
}

TEST_F(GroupsReplayTest, AMemberThatLeavesEndsAnAttempt) {
  Create();
  auto member = Join();
  Die({"a"});
  Take(member.get());
  member.reset();
  journaled_.Commit();
  Crash(nullptr);
  member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("a#2"));
}

TEST_F(GroupsReplayTest, ADelayGoesOnOverACrash) {
  Create();
  auto member = Join();
  Die({"a"});
  Take(member.get());
  ASSERT_TRUE(Nack("a", 1, 60 * kSecond).ok());
  journaled_.Commit();
  Crash(&member);
  member = Join();
  EXPECT_THAT(Take(member.get()), IsEmpty());
  EXPECT_EQ(group()->NextDueUs(), now_us_ + 60 * kSecond);
  now_us_ += 60 * kSecond;
  EXPECT_THAT(Take(member.get()), ElementsAre("a#2"));
}

TEST_F(GroupsReplayTest, ALateSettlementOfALostDeliveryIsToldThatItComesAgain) {
  Create();
  auto member = Join();
  Die({"a", "b"});
  Take(member.get());
  journaled_.Commit();
  Crash(&member);
  EXPECT_EQ(ReasonOf(Ack("a")), Reason::kStaleAttempt);
  member = Join();
  Take(member.get());
  EXPECT_TRUE(Ack("a").ok());
  // As before: no such attempt was ever made.
  EXPECT_EQ(FieldOf(Ack("b", 3)), "attempt");
}

TEST_F(GroupsReplayTest, EventsOfOneKeyComeOneAfterTheOther) {
  Create();
  auto member = Join();
  Die({"k"});
  Take(member.get());
  Die({"k", "other"});
  EXPECT_THAT(Take(member.get()), ElementsAre("other#1"));
  ASSERT_TRUE(Ack("other").ok());
  journaled_.Commit();
  Crash(&member);
  member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("k#1"));
  ASSERT_TRUE(Ack("k").ok());
  EXPECT_THAT(Take(member.get()), ElementsAre("k#1"));
  ASSERT_TRUE(Ack("k").ok());
  EXPECT_THAT(Take(member.get()), IsEmpty());
}

TEST_F(GroupsReplayTest, AGroupThatBeganWithTheEarliestHasThemAgain) {
  Die({"a", "b"});
  Create(GroupOptions(), Start::kEarliest);
  Die({"c"});
  Crash(nullptr);
  auto member = Join();
  EXPECT_THAT(Take(member.get()), UnorderedElementsAre("a#1", "b#1", "c#1"));
}

TEST_F(GroupsReplayTest, AGroupThatBeganNowHasNothingFromBefore) {
  Die({"a"});
  Create();
  journaled_.Commit();
  Crash(nullptr);
  auto member = Join();
  EXPECT_THAT(Take(member.get()), IsEmpty());
  Die({"b"});
  EXPECT_THAT(Take(member.get()), ElementsAre("b#1"));
}

TEST_F(GroupsReplayTest, WhatDiedWhileNobodyRanIsDelivered) {
  Create();
  ASSERT_TRUE(
      journaled_.map().Apply(Operation::Put("a", "v"), now_us_).status.ok());
  journaled_.Commit();
  CrashLater(nullptr, 3600 * kSecond);
  journaled_.Settle(now_us_);
  auto member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("a#1"));
}

TEST_F(GroupsReplayTest, OptionsAreThoseThatWereSetLast) {
  Create();
  ASSERT_TRUE(groups()
                  .Update(kGroup,
                          [](GroupOptions* options) {
                            options->max_attempts = 17;
                            return absl::OkStatus();
                          })
                  .ok());
  journaled_.Commit();
  Crash(nullptr);
  EXPECT_EQ(group()->options().max_attempts, 17);
}

TEST_F(GroupsReplayTest, ADeletedGroupIsGoneAndOneOfItsNameBeginsAnew) {
  Create();
  Die({"a"});
  ASSERT_TRUE(groups().Delete(kGroup).ok());
  journaled_.Commit();
  Crash(nullptr);
  EXPECT_EQ(ReasonOf(groups().Find(kGroup).status()), Reason::kGroupNotFound);
  Create();
  Die({"b"});
  Crash(nullptr);
  auto member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("b#1"));
  EXPECT_EQ(Statistics().lost, 0u);
}

TEST_F(GroupsReplayTest, AGroupThatWasUnusedTooLongIsRememberedByItsName) {
  GroupOptions options;
  options.unused_ttl_us = 100 * kSecond;
  Create(options);
  Die({"a", "b"});
  Pass(50 * kSecond);
  const int64_t since_us = Statistics().unused_since_us;
  Crash(nullptr);
  EXPECT_EQ(Statistics().unused_since_us, since_us);
  Pass(30 * kSecond);
  ASSERT_FALSE(groups().Find(kGroup).ok());
  Die({"c"});
  Crash(nullptr);
  const auto expired = groups().LastExpired(10);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].unsettled, 2u);
  EXPECT_EQ(groups().expired(), 0u);
  Create();
  journaled_.Commit();
  Crash(nullptr);
  EXPECT_EQ(Statistics().lost, 3u);
  EXPECT_THAT(groups().LastExpired(10), IsEmpty());
  auto member = Join();
  EXPECT_EQ(member->Take(now_us_).lost, 3u);
}

TEST_F(GroupsReplayTest, AGroupWithMembersIsUnusedSinceTheCrashAtTheEarliest) {
  GroupOptions options;
  options.unused_ttl_us = 100 * kSecond;
  Create(options);
  auto member = Join();
  Pass(3600 * kSecond);
  Crash(&member);
  Pass(3600 * kSecond);
  EXPECT_EQ(Statistics().unused_since_us, now_us_);
}

TEST_F(GroupsReplayTest, AnEventThatIsPutBackIsAnEntryBeforeItIsSettled) {
  journaled_.KeepOnly(
      [](const GroupChange& change) { return change.kind != Kind::kPutBack; });
  Create();
  auto member = Join();
  Die({"a"});
  Take(member.get());
  EXPECT_TRUE(
      Settle({events_.at("a"), 1, SettleAction::kPutBack, 0, 0}).status.ok());
  // The put outlives the crash, what it settles does not.
  journaled_.Commit();
  Crash(&member);
  EXPECT_TRUE(journaled_.map().Apply(Operation::Get("a"), now_us_).has_entry);
  member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("a#1"));
  const SettleResult again =
      Settle({events_.at("a"), 1, SettleAction::kPutBack, 0, 0});
  EXPECT_TRUE(again.status.ok());
  EXPECT_EQ(again.version, 0u);
  EXPECT_EQ(Statistics().put_back, 1u);
}

// --- Losses.

class GroupsReplayLossTest : public GroupsReplayTest {
 protected:
  static MapOptions Small() {
    MapOptions options = CrashOptions(10 * kSecond, 11);
    options.max_backlog_bytes = 1'500;
    return options;
  }
  GroupsReplayLossTest() : GroupsReplayTest(Small()) {}
};

TEST_F(GroupsReplayLossTest, WhatWasLostStaysLostAndIsReported) {
  Create();
  for (int i = 0; i < 20; ++i) Die({absl::StrCat("key", i)});
  const GroupStatistics before = Statistics();
  ASSERT_GT(before.lost, 0u);
  ASSERT_GT(before.backlog, 0u);
  Crash(nullptr);
  EXPECT_EQ(Statistics().lost, before.lost);
  EXPECT_EQ(Statistics().backlog, before.backlog);
  auto member = Join();
  EXPECT_EQ(member->Take(now_us_).lost, before.lost);
  journaled_.Commit();
  Crash(&member);
  member = Join();
  EXPECT_EQ(member->Take(now_us_).lost, 0u);
  EXPECT_EQ(Statistics().lost, before.lost);
}

// --- Dead letters.

class GroupsReplayDeadLetterTest : public GroupsReplayTest {
 protected:
  GroupsReplayDeadLetterTest()
      : GroupsReplayTest(WithDeadLetters(CrashOptions(10 * kSecond, 11))) {
    journaled_.SetDeadLetterSink(
        [this](const ConsumerGroups::DeadLetter& letter,
               ConsumerGroups::DeadLetterDone done) {
          letters_.emplace_back(letter.key, letter.value);
          if (lasts_) {
            done(absl::OkStatus());
          } else {
            waiting_.push_back(std::move(done));
          }
        });
  }

  bool lasts_ = true;
  std::vector<std::pair<std::string, std::string>> letters_;
  std::vector<ConsumerGroups::DeadLetterDone> waiting_;
};

TEST_F(GroupsReplayDeadLetterTest, IsPutOnceItsSettlementLasts) {
  Create(WithAckTimeout(10 * kSecond, 1));
  auto member = Join();
  Die({"a"});
  Take(member.get());
  Pass(10 * kSecond);
  EXPECT_EQ(letters_.size(), 1u);
  Crash(&member);
  Pass(10 * kSecond);
  EXPECT_EQ(letters_.size(), 1u);
  EXPECT_EQ(Statistics().dead_lettered, 1u);
}

TEST_F(GroupsReplayDeadLetterTest, IsPutAgainAsItWasIfItWasNotSettled) {
  Create(WithAckTimeout(10 * kSecond, 1));
  auto member = Join();
  Die({"a"});
  Take(member.get());
  lasts_ = false;
  Pass(10 * kSecond);
  ASSERT_EQ(letters_.size(), 1u);
  // Not settled before the letter lasts.
  EXPECT_EQ(Statistics().dead_lettered, 0u);
  EXPECT_EQ(Statistics().backlog, 1u);
  waiting_.clear();
  Crash(&member);
  Pass(10 * kSecond);
  ASSERT_EQ(letters_.size(), 2u);
  EXPECT_EQ(letters_[0], letters_[1]);
  ASSERT_EQ(waiting_.size(), 1u);
  waiting_[0](absl::OkStatus());
  waiting_.clear();
  EXPECT_EQ(Statistics().dead_lettered, 1u);
  EXPECT_EQ(Statistics().backlog, 0u);
}

TEST_F(GroupsReplayDeadLetterTest, OneThatNeverFitsIsLostOverACrash) {
  Create(WithAckTimeout(10 * kSecond, 1));
  auto member = Join();
  Die({"a"});
  Take(member.get());
  lasts_ = false;
  Pass(10 * kSecond);
  waiting_.at(0)(absl::OutOfRangeError("too large"));
  waiting_.clear();
  journaled_.Commit();
  Crash(&member);
  EXPECT_EQ(Statistics().lost, 1u);
  EXPECT_EQ(Statistics().dead_letters_dropped, 1u);
  EXPECT_EQ(Statistics().backlog, 0u);
}

// --- What is told.

TEST_F(GroupsReplayTest, EventsThatAreSettledInARowAreOneChange) {
  Create();
  auto member = Join();
  std::vector<std::string> keys;
  for (int i = 0; i < 1'000; ++i) keys.push_back(absl::StrCat("key", i));
  Die(keys);
  std::vector<Settlement> settlements;
  for (const Delivery& delivery : member->Take(now_us_).deliveries) {
    settlements.push_back({delivery.event_id, 1, SettleAction::kAck, 0, 0});
  }
  ASSERT_EQ(settlements.size(), 1'000u);
  std::vector<SettleResult> results(settlements.size());
  CommitKinds();
  ASSERT_TRUE(groups()
                  .Settle(kGroup, settlements, now_us_, absl::MakeSpan(results))
                  .ok());
  EXPECT_THAT(CommitKinds(), ElementsAre(Kind::kAcked));
}

TEST_F(GroupsReplayTest, AGroupIsToldOfBeforeTheTickOfItsFirstEvent) {
  ASSERT_TRUE(
      journaled_.map().Apply(Operation::Put("a", "v"), now_us_).status.ok());
  now_us_ += 20 * kSecond;
  // "a" has died and nobody has come round to say so.
  Create();
  EXPECT_THAT(CommitKinds(), ElementsAre(Kind::kExists));
  ASSERT_TRUE(log_.last().tick.has_value());
  EXPECT_EQ(log_.last().tick->next_event, JournaledMap::kFirstEvent + 1);
  EXPECT_EQ(log_.last().groups[0].change().end, JournaledMap::kFirstEvent + 1);
}

// --- A journal without its beginning.

class GroupsToldAgainTest : public GroupsReplayTest {
 protected:
  static MapOptions WithoutRetention() {
    MapOptions options = CrashOptions(10 * kSecond, 11);
    options.retention_us = 0;
    return options;
  }
  GroupsToldAgainTest() : GroupsReplayTest(WithoutRetention()) {}

  // Tells all of them again, `most` events a step, and drops what was committed
  // before. Returns the first event of a log that is made again.
  uint64_t TellAgain(int most = 3) {
    Pass(0);
    const size_t before = log_.size();
    ScanPlace entries;
    while (journaled_.map().TellAgain(now_us_, 10, 1 << 20, &entries)) {
    }
    Pass(kSecond);
    const uint64_t first = JournaledMap::kFirstEvent + journaled_.told().size();
    ConsumerGroups::Place place;
    while (groups().TellAgain(first, most, 1 << 20, &place)) {
    }
    journaled_.Commit();
    log_.DropFirst(before);
    return first;
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
  const uint64_t first = TellAgain();
  const GroupStatistics before = Statistics();
  const auto described = journaled_.DescribeGroups();
  member.reset();
  journaled_.Crash(now_us_, first);
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
  const uint64_t first = TellAgain();
  journaled_.Crash(now_us_, first);
  const auto expired = groups().LastExpired(10);
  ASSERT_EQ(expired.size(), 1u);
  EXPECT_EQ(expired[0].name, kGroup);
  EXPECT_EQ(expired[0].next_event, first);
}

TEST_F(GroupsToldAgainTest, ItDoesNotBeginWhileEarlierEventsAreRetained) {
  Create();
  ASSERT_TRUE(
      journaled_.map().Apply(Operation::Put("a", "v"), now_us_).status.ok());
  now_us_ += 20 * kSecond;
  journaled_.map().Advance(now_us_);
  journaled_.Commit();
  journaled_.Permit();
  ConsumerGroups::Place place;
  // "a" is not in the log yet.
  EXPECT_TRUE(
      groups().TellAgain(JournaledMap::kFirstEvent + 1, 100, 1 << 20, &place));
  EXPECT_THAT(CommitKinds(), IsEmpty());
  Pass(kSecond);
  Pass(kSecond);
  while (
      groups().TellAgain(JournaledMap::kFirstEvent + 1, 100, 1 << 20, &place)) {
  }
  EXPECT_THAT(CommitKinds(), ElementsAre(Kind::kExists, Kind::kKept));
}

TEST_F(GroupsToldAgainTest, TellingAgainChangesNothingOfWhatIsKnown) {
  Create();
  auto member = Join();
  Die({"a", "b", "c"});
  Take(member.get());
  ASSERT_TRUE(Nack("a", 1, 600 * kSecond).ok());
  // Half of a walk, then a crash: all from before is still there.
  ConsumerGroups::Place place;
  EXPECT_TRUE(groups().TellAgain(0, 2, 1 << 20, &place));
  ASSERT_TRUE(Ack("b").ok());
  journaled_.Commit();
  Crash(&member);
  EXPECT_EQ(Statistics().backlog, 2u);
  EXPECT_EQ(Statistics().acked, 1u);
  EXPECT_EQ(Statistics().delivered, 2u);
  EXPECT_EQ(Statistics().lost, 0u);
}

// --- What no map tells.

TEST_F(GroupsReplayTest, WhatNoMapTellsIsDataLoss) {
  Create();
  Die({"a"});
  const MapOptions options = CrashOptions(10 * kSecond, 11);
  TimeCacheMap map("map", options, nullptr, kStartUs, EventFormat::Plain(),
                   {.first_event = 1, .journaled = true, .hash_seed = 7});
  MapReplay replay(&map);
  GroupChange exists = {
      .kind = Kind::kExists, .name = "g", .first = 1, .end = 1};
  exists.options.max_attempts = 0;
  EXPECT_TRUE(absl::IsDataLoss(replay.Apply(exists)));
  exists.options.max_attempts = 1;
  EXPECT_TRUE(replay.Apply(exists).ok());
  // Of an event that no tick has told of.
  EXPECT_TRUE(absl::IsDataLoss(replay.Apply(
      GroupChange{.kind = Kind::kAcked, .name = "g", .first = 1, .end = 2})));
  // Of a group that is told again later.
  EXPECT_TRUE(replay
                  .Apply(GroupChange{
                      .kind = Kind::kAcked, .name = "h", .first = 1, .end = 2})
                  .ok());
}

}  // namespace
}  // namespace timecache::server

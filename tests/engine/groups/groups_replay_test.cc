// Consumer groups that are made again with their map are the same groups: what
// was settled stays settled, and all else is delivered again.

#include "server/engine/groups/groups_replay.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/groups/group_ledger.h"
#include "tests/engine/groups/groups_replay_fixture.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;
using Kind = GroupChange::Kind;
using Start = ExpiryLog::Start;

TEST_F(GroupsReplayTest, APauseOfASuspectGoesOnOverACrash) {
  Create();
  Die({"bomb"});
  for (int i = 0; i < GroupLedger::kSuspectReturns; ++i) {
    auto member = Join();
    EXPECT_THAT(Take(member.get()), ElementsAre("bomb#1"));
    member->Vanish(now_us_);
  }
  EXPECT_EQ(Statistics().suspects, 1u);
  journaled_.Commit();
  Crash(nullptr);
  auto member = Join();
  EXPECT_THAT(Take(member.get()), IsEmpty());
  EXPECT_EQ(group()->NextDueUs(), now_us_ + kSecond);
  // Who was suspected is forgotten.
  EXPECT_EQ(Statistics().suspects, 0u);
}

TEST_F(GroupsReplayTest, ReasonsAndRetriesAreKept) {
  GroupOptions options;
  options.retry_delay_us = 60 * kSecond;
  options.retry_multiplier = 3;
  options.max_retry_delay_us = 100 * kSecond;
  options.retry_jitter_percent = 0;
  options.paused = false;
  Create(options);
  auto member = Join();
  Die({"a"});
  Take(member.get());
  Settlement nack = SettlementOfKey("a", 1, SettleAction::kNack);
  nack.reason = "no ink";
  ASSERT_TRUE(Settle(nack).status.ok());
  const int64_t ready_us = now_us_ + 60 * kSecond;
  const auto update = [&](bool paused) {
    ASSERT_TRUE(groups()
                    .Update(kGroup,
                            [paused](GroupOptions* to) {
                              to->paused = paused;
                              to->single_active = paused;
                              return absl::OkStatus();
                            })
                    .ok());
  };
  update(true);
  journaled_.Commit();
  Crash(&member);
  EXPECT_EQ(group()->options().retry_multiplier, 3);
  EXPECT_TRUE(group()->options().paused);
  EXPECT_TRUE(group()->options().single_active);
  member = Join();
  EXPECT_EQ(group()->NextDueUs(), ready_us);
  update(false);
  journaled_.Commit();
  Crash(&member);
  EXPECT_FALSE(group()->options().paused);
  EXPECT_FALSE(group()->options().single_active);
  member = Join();
  Pass(60 * kSecond);
  const EventChunk chunk = member->Take(now_us_);
  ASSERT_THAT(Given(chunk), ElementsAre("a#2"));
  ASSERT_NE(chunk.deliveries[0].reason_text, nullptr);
  EXPECT_EQ(*chunk.deliveries[0].reason_text, "no ink");
  EXPECT_TRUE(
      Settle(SettlementOf(chunk.deliveries[0], SettleAction::kTerminate))
          .status.ok());
  EXPECT_EQ(Statistics().terminated, 1u);
  journaled_.Commit();
  Crash(&member);
  EXPECT_EQ(Statistics().terminated, 1u);
  EXPECT_EQ(Statistics().backlog, 0u);
  EXPECT_EQ(Statistics().lost, 0u);
}

TEST_F(GroupsReplayTest, AnAckOfALostDeliverySettlesAndANackDoesNot) {
  Create();
  auto member = Join();
  Die({"a", "b", "c", "d"});
  Take(member.get());
  ASSERT_TRUE(Nack("d", 1, 0).ok());
  EXPECT_THAT(Take(member.get()), ElementsAre("d#2"));
  journaled_.Commit();
  Crash(&member);
  EXPECT_EQ(ReasonOf(Nack("b", 1, 0)), Reason::kStaleAttempt);
  // Behind others that nobody has been given since.
  EXPECT_TRUE(Ack("c").ok());
  EXPECT_TRUE(Ack("d", 2).ok());
  EXPECT_EQ(ReasonOf(Ack("c")), Reason::kEventNotUnsettled);
  EXPECT_EQ(Statistics().acked, 2u);
  EXPECT_EQ(Statistics().delivered, 3u);
  EXPECT_EQ(Statistics().redelivered, 1u);
  journaled_.Commit();
  Crash(nullptr);
  EXPECT_EQ(Statistics().acked, 2u);
  EXPECT_EQ(Statistics().delivered, 3u);
  EXPECT_EQ(Statistics().redelivered, 1u);
  member = Join();
  EXPECT_THAT(Take(member.get()), UnorderedElementsAre("a#1", "b#1"));
  EXPECT_TRUE(Ack("a").ok());
}

TEST_F(GroupsReplayTest, AGroupKeepsItsIdentityAndOneMadeAnewHasAnother) {
  Create();
  auto member = Join();
  Die({"a"});
  Take(member.get());
  const uint64_t id = group()->delivery_id();
  Crash(&member);
  EXPECT_EQ(group()->delivery_id(), id);
  ASSERT_TRUE(groups().Delete(kGroup).ok());
  Create(GroupOptions(), ExpiryLog::Start::kEarliest);
  EXPECT_NE(group()->delivery_id(), id);
  EXPECT_EQ(ReasonOf(Ack("a")), Reason::kStaleAttempt);
  member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("a#1"));
  EXPECT_TRUE(Ack("a").ok());
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

TEST_F(GroupsReplayTest, AnEventThatIsPutBackIsAnEntryBeforeItIsSettled) {
  journaled_.KeepOnly(
      [](const GroupChange& change) { return change.kind != Kind::kPutBack; });
  Create();
  auto member = Join();
  Die({"a"});
  Take(member.get());
  EXPECT_TRUE(
      Settle(SettlementOfKey("a", 1, SettleAction::kPutBack)).status.ok());
  // The put outlives the crash, what it settles does not.
  journaled_.Commit();
  Crash(&member);
  EXPECT_TRUE(journaled_.map().Apply(Operation::Get("a"), now_us_).has_entry);
  member = Join();
  EXPECT_THAT(Take(member.get()), ElementsAre("a#1"));
  const SettleResult again =
      Settle(SettlementOfKey("a", 1, SettleAction::kPutBack));
  EXPECT_TRUE(again.status.ok());
  EXPECT_EQ(again.version, 0u);
  EXPECT_EQ(Statistics().put_back, 1u);
}

class GroupsReplayDeadLetterTest : public GroupsReplayTest {
 protected:
  static NamespaceOptions WithDeadLetters() {
    NamespaceOptions options = CrashOptions(10 * kSecond, 11);
    options.dead_letter_namespace = "dead";
    return options;
  }
  GroupsReplayDeadLetterTest() : GroupsReplayTest(WithDeadLetters()) {}
};

TEST_F(GroupsReplayDeadLetterTest, IsPutAgainAsItWasIfItWasNotSettled) {
  std::vector<std::pair<std::string, std::string>> letters;
  std::vector<ConsumerGroups::DeadLetterDone> waiting;
  journaled_.SetDeadLetterSink([&](const ConsumerGroups::DeadLetter& letter,
                                   ConsumerGroups::DeadLetterDone done) {
    letters.emplace_back(letter.key, letter.value);
    waiting.push_back(std::move(done));
  });
  Create(WithAckTimeout(10 * kSecond, 1));
  auto member = Join();
  Die({"a"});
  Take(member.get());
  Pass(10 * kSecond);
  ASSERT_EQ(letters.size(), 1u);
  // Not settled before the letter lasts.
  EXPECT_EQ(Statistics().dead_lettered, 0u);
  EXPECT_EQ(Statistics().backlog, 1u);
  waiting.clear();
  Crash(&member);
  Pass(10 * kSecond);
  ASSERT_EQ(letters.size(), 2u);
  EXPECT_EQ(letters[0].first, letters[1].first);
  // But for its time, which stands last.
  constexpr size_t kTimeBytes = 8;
  ASSERT_EQ(letters[0].second.size(), letters[1].second.size());
  const size_t same = letters[0].second.size() - kTimeBytes;
  EXPECT_EQ(letters[0].second.substr(0, same),
            letters[1].second.substr(0, same));
  ASSERT_EQ(waiting.size(), 1u);
  waiting[0](absl::OkStatus());
  EXPECT_EQ(Statistics().dead_lettered, 1u);
  EXPECT_EQ(Statistics().backlog, 0u);
}

TEST_F(GroupsReplayTest, EventsThatAreSettledInARowAreOneChange) {
  Create();
  auto member = Join();
  std::vector<std::string> keys;
  for (int i = 0; i < 1'000; ++i) keys.push_back(absl::StrCat("key", i));
  Die(keys);
  std::vector<Settlement> settlements;
  for (const Delivery& delivery : member->Take(now_us_).deliveries) {
    settlements.push_back(SettlementOf(delivery));
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
  EXPECT_THAT(CommitKinds(), ElementsAre(Kind::kExists, Kind::kIdentity));
  ASSERT_TRUE(log_.last().tick.has_value());
  EXPECT_EQ(log_.last().tick->next_event, JournaledMap::kFirstEvent + 1);
  EXPECT_EQ(log_.last().groups[0].change().end, JournaledMap::kFirstEvent + 1);
}

TEST_F(GroupsReplayTest, WhatNoMapTellsIsDataLoss) {
  Create();
  Die({"a"});
  const NamespaceOptions options = CrashOptions(10 * kSecond, 11);
  TimeCacheMap map("map", options, nullptr, kStartUs,
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

// A map's groups that crash with it, and one of their members.

#ifndef TIMECACHED_TESTS_ENGINE_GROUPS_GROUPS_REPLAY_FIXTURE_H_
#define TIMECACHED_TESTS_ENGINE_GROUPS_GROUPS_REPLAY_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/groups/group_change.h"
#include "tests/support/engine/crash_world.h"
#include "tests/support/engine/group_harness.h"

namespace timecache::server {

inline constexpr char kGroup[] = "workers";

class GroupsReplayTest : public ::testing::Test {
 protected:
  explicit GroupsReplayTest(
      const NamespaceOptions& options = CrashOptions(10 * kSecond, 11))
      : journaled_(options, &log_) {}

  ConsumerGroups& groups() { return journaled_.groups(); }
  std::shared_ptr<ConsumerGroup> group() {
    const auto group = groups().Find(kGroup);
    EXPECT_TRUE(group.ok()) << group.status();
    return *group;
  }
  GroupStatistics Statistics() { return group()->GetStatistics(); }
  void Create(const GroupOptions& options = GroupOptions(),
              ExpiryLog::Start start = ExpiryLog::Start::kNow) {
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
    const EventChunk chunk = member->Take(now_us_);
    for (const Delivery& delivery : chunk.deliveries) {
      events_[std::string(delivery.event().key)] = SettlementOf(delivery);
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
  Settlement SettlementOfKey(const std::string& key, int attempt,
                             SettleAction action) {
    Settlement settlement = events_.at(key);
    settlement.attempt = attempt;
    settlement.action = action;
    return settlement;
  }
  absl::Status Ack(const std::string& key, int attempt = 1) {
    return Settle(SettlementOfKey(key, attempt, SettleAction::kAck)).status;
  }
  absl::Status Nack(const std::string& key, int attempt, int64_t delay_us) {
    Settlement nack = SettlementOfKey(key, attempt, SettleAction::kNack);
    nack.delay_us = delay_us;
    return Settle(nack).status;
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
  std::vector<GroupChange::Kind> CommitKinds() {
    journaled_.Commit();
    std::vector<GroupChange::Kind> kinds;
    for (const KeptGroupChange& kept : log_.last().groups) {
      kinds.push_back(kept.change().kind);
    }
    return kinds;
  }

  int64_t now_us_ = kStartUs;
  MemoryCommitLog log_;
  JournaledMap journaled_;
  std::map<std::string, Settlement> events_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_ENGINE_GROUPS_GROUPS_REPLAY_FIXTURE_H_

// One consumer group on a log of its own, and its members: what the tests of
// groups need, so that each says only what it is about.

#ifndef TIMECACHED_TESTS_SUPPORT_ENGINE_GROUP_HARNESS_H_
#define TIMECACHED_TESTS_SUPPORT_ENGINE_GROUP_HARNESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/groups/backlog_account.h"
#include "server/engine/groups/consumer_group.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {

// What was given, as "key#attempt".
std::vector<std::string> Given(const EventChunk& chunk);

// Of this delivery.
Settlement SettlementOf(const Delivery& delivery,
                        SettleAction action = SettleAction::kAck,
                        std::optional<int64_t> delay_us = {});

// Every event since the start is exactly one of what this adds up.
uint64_t Sum(const GroupStatistics& statistics);

// Options with the given ones, else as by default.
GroupOptions WithAckTimeout(int64_t ack_timeout_us, int max_attempts = 5);
GroupOptions WithBacklog(int64_t max_backlog_bytes);

// A member that counts how often it is woken.
class TestMember {
 public:
  TestMember(ConsumerGroup* group, int max_in_flight, JoinAs as = {})
      : member_(group->Join(
            max_in_flight, [this] { ++wakes_; }, std::move(as))) {}

  EventChunk Take(int64_t now_us, int max_events = 1000,
                  int64_t max_bytes = int64_t{1} << 30) {
    return member_->Take(now_us, max_events, max_bytes);
  }
  // Wakes since the last call.
  int TakeWakes() { return std::exchange(wakes_, 0); }
  void Leave() { member_.reset(); }
  // Of a fetch: its answer was sent, or not.
  void End(int64_t now_us, StreamEnd end) {
    member_->StopTaking();
    member_->Leave(now_us, end);
    member_.reset();
  }
  // The client is gone.
  void Vanish(int64_t now_us) {
    member_->Leave(now_us, StreamEnd::kByClient);
    member_.reset();
  }

 private:
  int wakes_ = 0;
  std::unique_ptr<ConsumerGroup::Member> member_;
};

// Not thread-safe. Time stands still until the test moves it. Event numbers
// begin with 1.
class GroupHarness {
 public:
  explicit GroupHarness(const GroupOptions& options = GroupOptions(),
                        ExpiryLog::Start start = ExpiryLog::Start::kNow);
  ~GroupHarness();

  ExpiryLog& log() { return log_; }
  ConsumerGroup& group() { return *group_; }
  const BacklogAccount& account() const { return account_; }
  int64_t now_us() const { return now_us_; }
  void Pass(int64_t step_us) { now_us_ += step_us; }

  // A batch of these keys dies now, with values of that size.
  void Die(const std::vector<std::string>& keys, size_t value_bytes = 0);
  // One of keys prefix0 to prefix<count - 1>.
  void DieMany(absl::string_view prefix, int count, size_t value_bytes = 0);

  std::unique_ptr<TestMember> Join(int max_in_flight = 1000) {
    return std::make_unique<TestMember>(group_.get(), max_in_flight);
  }
  // Of a namespace's member, of which `in_flight` is.
  std::unique_ptr<TestMember> Join(std::shared_ptr<InFlightLimit> in_flight) {
    return std::make_unique<TestMember>(
        group_.get(), 1000, JoinAs{.in_flight = std::move(in_flight)});
  }
  std::unique_ptr<TestMember> Fetch(int max_events = 1000) {
    return std::make_unique<TestMember>(group_.get(), max_events,
                                        JoinAs{.fetches = true});
  }
  // What `member` is given, as Given.
  std::vector<std::string> Take(TestMember* member, int max_events = 1000) {
    return Given(member->Take(now_us_, max_events));
  }

  absl::Status Settle(const Settlement& settlement);
  // Of deliveries without returns.
  absl::Status Ack(uint64_t event_id, int attempt) {
    return Settle({event_id, attempt, SettleAction::kAck});
  }
  absl::Status Nack(uint64_t event_id, int attempt, int64_t delay_us = 0) {
    return Settle({event_id, attempt, SettleAction::kNack, delay_us});
  }
  absl::Status Extend(uint64_t event_id, int attempt) {
    return Settle({event_id, attempt, SettleAction::kExtend});
  }
  absl::StatusOr<Delivery> BeginPutBack(uint64_t event_id, int attempt) {
    return group_->BeginPutBack({event_id, attempt, SettleAction::kPutBack},
                                now_us_);
  }
  void AckAll(const EventChunk& chunk);

  // Advances; what is to become a dead letter.
  std::vector<Delivery> Advance(size_t max_doomed = 1000);
  GroupStatistics Statistics() const { return group_->GetStatistics(); }
  // The earliest time that `schedule` was told of since the last call.
  int64_t TakeScheduled() { return std::exchange(scheduled_us_, kNeverUs); }

 private:
  int64_t now_us_ = kStartUs;
  int64_t scheduled_us_ = kNeverUs;
  ExpiryLog log_;
  BacklogAccount account_;
  std::unique_ptr<ConsumerGroup> group_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_ENGINE_GROUP_HARNESS_H_

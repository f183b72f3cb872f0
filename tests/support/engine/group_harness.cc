#include "tests/support/engine/group_harness.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace timecache::server {

std::vector<std::string> Given(const EventChunk& chunk) {
  std::vector<std::string> given;
  for (const Delivery& delivery : chunk.deliveries) {
    given.push_back(absl::StrCat(delivery.event().key, "#", delivery.attempt));
  }
  return given;
}

Settlement SettlementOf(const Delivery& delivery, SettleAction action,
                        std::optional<int64_t> delay_us) {
  Settlement settlement = {delivery.event_id, delivery.attempt, action,
                           delay_us};
  settlement.returns = delivery.returns;
  settlement.group_id = delivery.group_id;
  return settlement;
}

uint64_t Sum(const GroupStatistics& s) {
  return s.backlog + s.in_flight + s.acked + s.put_back + s.dead_lettered +
         s.lost + s.terminated + s.skipped;
}

GroupOptions WithAckTimeout(int64_t ack_timeout_us, int max_attempts) {
  GroupOptions options;
  options.ack_timeout_us = ack_timeout_us;
  options.max_attempts = max_attempts;
  return options;
}

GroupOptions WithBacklog(int64_t max_backlog_bytes) {
  GroupOptions options;
  options.max_backlog_bytes = max_backlog_bytes;
  return options;
}

GroupHarness::GroupHarness(const GroupOptions& options, ExpiryLog::Start start)
    : log_(3600 * kSecond, int64_t{64} << 20) {
  EXPECT_TRUE(Validate(options).ok()) << Validate(options);
  group_ = std::make_unique<ConsumerGroup>(
      "workers", options, ConsumerGroup::Owner{&log_, &account_},
      [this](int64_t due_us) {
        scheduled_us_ = std::min(scheduled_us_, due_us);
      });
  group_->Start(log_.Follow(group_.get(), start, 0), 0, now_us_);
}

GroupHarness::~GroupHarness() { log_.Unfollow(group_.get()); }

void GroupHarness::Die(const std::vector<std::string>& keys,
                       size_t value_bytes) {
  auto batch = std::make_shared<EventBatch>(
      "map", Death{now_us_, now_us_, Cause::kExpired});
  const std::string value(value_bytes, 'v');
  for (const std::string& key : keys) batch->Add({key, value, 7, 1, 2});
  batch->ShrinkToFit();
  log_.Append(std::move(batch), now_us_, now_us_);
}

void GroupHarness::DieMany(absl::string_view prefix, int count,
                           size_t value_bytes) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back(absl::StrCat(prefix, i));
  Die(keys, value_bytes);
}

absl::Status GroupHarness::Settle(const Settlement& settlement) {
  SettleResult result;
  EXPECT_EQ(
      group_->Settle({&settlement, 1}, now_us_, absl::MakeSpan(&result, 1)),
      1u);
  return result.status;
}

void GroupHarness::AckAll(const EventChunk& chunk) {
  for (const Delivery& delivery : chunk.deliveries) {
    const absl::Status status = Settle(SettlementOf(delivery));
    EXPECT_TRUE(status.ok()) << status;
  }
}

std::vector<Delivery> GroupHarness::Advance(size_t max_doomed) {
  std::vector<Delivery> doomed;
  DeadLetterBudget room = {static_cast<int>(max_doomed)};
  while (group_->Advance(now_us_, &room, &doomed) &&
         doomed.size() < max_doomed) {
  }
  return doomed;
}

}  // namespace timecache::server

#include "tests/support/delivery/delivery_group_player.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/wire_reader.h"
#include "tests/support/engine/group_harness.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int64_t kDayUs = 86'400 * kSecond;
constexpr int kMaxTake = 40;
constexpr int kMaxSettlements = 20;

}  // namespace

GroupPlayer::GroupPlayer(std::string name, const GroupPlayerOptions& options,
                         TimeCacheMap* map, DeliveryReference* events,
                         const RetainedReference* log, Dice* dice,
                         PutBack put_back)
    : name_(std::move(name)),
      options_(options),
      map_(map),
      events_(events),
      log_(log),
      dice_(dice),
      put_back_(std::move(put_back)) {}

void GroupPlayer::Create(ExpiryLog::Start start, int64_t now_us) {
  const auto group =
      map_->groups().Create(name_, options_.group, start, now_us);
  ASSERT_TRUE(group.ok()) << group.status();
  group_ = *group;
  const bool now = start == ExpiryLog::Start::kNow;
  reference_ = std::make_unique<DeliveryGroup>(
      options_.group, options_.dead_letters,
      now ? events_->end() : log_->oldest(), events_, log_);
  reference_->SetGroupId(group_->delivery_id());
  reference_->Append();
  reference_->CheckLost(group_->GetStatistics());
}

void GroupPlayer::Delete() {
  ASSERT_TRUE(map_->groups().Delete(name_).ok());
  ASSERT_EQ(ReasonOf(map_->groups().Find(name_).status()),
            Reason::kGroupNotFound);
  CheckClosed();
}

void GroupPlayer::CheckClosed() {
  for (const auto& member : members_) {
    ASSERT_TRUE(member->woken || member->more) << "nobody told it of the end";
    ASSERT_TRUE(member->member->Take(0, 1, 1).closed);
  }
  Count();
  members_.clear();
  given_.clear();
  group_ = nullptr;
}

void GroupPlayer::Count() {
  const GroupStatistics of = reference_->counted();
  sum_.delivered += of.delivered;
  sum_.redelivered += of.redelivered;
  sum_.acked += of.acked;
  sum_.nacked += of.nacked;
  sum_.put_back += of.put_back;
  sum_.timed_out += of.timed_out;
  sum_.dead_lettered += of.dead_lettered;
  sum_.dead_letter_failures += of.dead_letter_failures;
  sum_.lost += of.lost;
}

std::string GroupPlayer::Story() const {
  return absl::StrCat(
      sum_.delivered, " given, ", sum_.redelivered, " again, ", sum_.acked,
      " acked, ", sum_.nacked, " nacked, ", sum_.put_back, " put back, ",
      sum_.timed_out, " timed out, ", sum_.dead_lettered, " dead letters, ",
      sum_.dead_letter_failures, " failures, ", sum_.lost, " lost");
}

void GroupPlayer::Step(int64_t now_us) {
  const int64_t kind = dice_->Draw(0, 99);
  Member* const member = members_.empty()
                             ? nullptr
                             : members_[dice_->Index(members_.size())].get();
  if (kind < 10) {
    Join();
  } else if (kind < 14) {
    Leave(now_us);
  } else if (kind < 54) {
    if (member == nullptr) return;
    Take(member, static_cast<int>(dice_->Draw(1, kMaxTake)),
         dice_->Draw(1, 1 << 16), now_us);
  } else if (kind < 96) {
    SettleSome(now_us);
  } else if (kind < 98) {
    Update();
  } else if (dice_->Chance(100)) {
    ASSERT_NO_FATAL_FAILURE(Delete());
    Create(dice_->Chance(500) ? ExpiryLog::Start::kNow
                              : ExpiryLog::Start::kEarliest,
           now_us);
  }
}

void GroupPlayer::Join() {
  if (members_.size() == options_.max_members) return;
  auto& member = members_.emplace_back(std::make_unique<Member>());
  member->id = ++last_member_;
  const int max_in_flight = static_cast<int>(
      dice_->Chance(300) ? dice_->Draw(1, 3) : dice_->Draw(1, 500));
  member->member =
      group_->Join(max_in_flight, [woken = &member->woken] { *woken = true; });
  reference_->Join(member->id, max_in_flight);
}

void GroupPlayer::Leave(int64_t now_us) {
  if (members_.empty()) return;
  const auto it = members_.begin() +
                  static_cast<std::ptrdiff_t>(dice_->Index(members_.size()));
  const int id = (*it)->id;
  members_.erase(it);
  reference_->Leave(id, now_us);
}

void GroupPlayer::Take(Member* member, int max_events, int64_t max_bytes,
                       int64_t now_us) {
  member->woken = member->more = false;
  const std::set<int> woken = Woken();
  const auto chunk = member->member->Take(now_us, max_events, max_bytes);
  ASSERT_NO_FATAL_FAILURE(
      reference_->CheckTake(member->id, max_events, chunk, woken, now_us));
  member->more = chunk.more;
  for (const Delivery& delivery : chunk.deliveries) {
    given_[delivery.event_id] = delivery;
    const Settlement settlement = SettlementOf(delivery);
    if (past_.size() < kMaxPast) {
      past_.push_back(settlement);
    } else {
      past_[dice_->Index(past_.size())] = settlement;
    }
  }
}

void GroupPlayer::SettleSome(int64_t now_us) {
  std::vector<Settlement> held;
  if (!members_.empty()) {
    held = reference_->Held(members_[dice_->Index(members_.size())]->id);
  }
  std::vector<Settlement> settlements;
  for (int64_t i = dice_->Draw(1, kMaxSettlements); i > 0; --i) {
    settlements.push_back(RandomSettlement(held));
  }
  Settle(settlements, now_us);
}

void GroupPlayer::SettleAll(const Member& member, int64_t now_us) {
  Settle(reference_->Held(member.id), now_us);
}

Settlement GroupPlayer::RandomSettlement(const std::vector<Settlement>& held) {
  Settlement settlement;
  if (!held.empty()) settlement = held[dice_->Index(held.size())];
  if (held.empty() || dice_->Chance(options_.wrong_per_mille)) {
    if (!past_.empty()) settlement = past_[dice_->Index(past_.size())];
    if (dice_->Chance(100)) ++settlement.group_id;
  }
  if (dice_->Chance(100)) {
    settlement.action = SettleAction::kExtend;
    return settlement;
  }
  if (!dice_->Chance(options_.refuse_per_mille)) return settlement;
  if (dice_->Chance(600)) {
    settlement.action = SettleAction::kNack;
    if (dice_->Chance(500)) settlement.delay_us = dice_->Draw(0, 2 * kSecond);
    if (dice_->Chance(10)) settlement.delay_us = dice_->Draw(7, 8) * kDayUs;
    if (dice_->Chance(10)) settlement.delay_us = -1;
  } else {
    settlement.action = SettleAction::kPutBack;
    if (dice_->Chance(300)) {
      settlement.ttl_us = dice_->Draw(kMinTtlUs, 3 * kSecond);
    }
    if (dice_->Chance(10)) settlement.ttl_us = kMinTtlUs - 1;
  }
  return settlement;
}

void GroupPlayer::Settle(const std::vector<Settlement>& settlements,
                         int64_t now_us) {
  std::vector<SettleResult> results(settlements.size());
  const absl::Status status = map_->groups().Settle(name_, settlements, now_us,
                                                    absl::MakeSpan(results));
  ASSERT_TRUE(status.ok()) << status;
  reference_->Advance(now_us);
  for (size_t i = 0; i < settlements.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(CheckSettled(settlements[i], results[i], now_us));
  }
}

void GroupPlayer::CheckSettled(const Settlement& settlement,
                               const SettleResult& result, int64_t now_us) {
  SCOPED_TRACE(testing::Message()
               << "event " << settlement.event_id << ", attempt "
               << settlement.attempt << ", action "
               << static_cast<int>(settlement.action) << ", delay "
               << settlement.delay_us.value_or(0) << ", ttl "
               << settlement.ttl_us);
  const absl::Status expected = reference_->Expected(settlement);
  if (!expected.ok()) {
    ASSERT_EQ(result.status.code(), expected.code()) << result.status;
    ASSERT_EQ(ReasonOf(result.status), ReasonOf(expected)) << result.status;
    ASSERT_EQ(FieldOf(result.status), FieldOf(expected)) << result.status;
    ASSERT_EQ(result.version, 0u);
    if (ReasonOf(expected) == Reason::kStaleAttempt &&
        settlement.group_id == reference_->group_id()) {
      reference_->AnswerLate(settlement);
    }
    return;
  }
  reference_->Answer(settlement);
  const bool put_back = settlement.action == SettleAction::kPutBack;
  if (put_back && !CheckPutBack(settlement, result)) return;
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_TRUE(put_back || result.version == 0);
  reference_->Settle(settlement, now_us);
  if (settlement.action == SettleAction::kAck || put_back) {
    given_.erase(settlement.event_id);
  }
}

// Whether the event is settled: put, or let go.
bool GroupPlayer::CheckPutBack(const Settlement& settlement,
                               const SettleResult& result) {
  const ExpiredEvent event = given_.at(settlement.event_id).event();
  Operation op = Operation::Put(event.key, event.value);
  op.condition = Condition::kIfAbsent;
  const int64_t ttl_us =
      settlement.ttl_us != 0
          ? settlement.ttl_us
          : std::min(event.own_ttl_us, map_->options().max_ttl_us);
  if (ttl_us != 0) op = op.WithTtl(ttl_us);
  if (settlement.expire_at_us.has_value()) {
    op = op.ExpiringAt(*settlement.expire_at_us, settlement.allow_past);
  }
  const Result put = put_back_(op, result.version);
  if (ReasonOf(put.status) == Reason::kKeyExists) {
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.version, 0u);
    return true;
  }
  EXPECT_EQ(result.status.code(), put.status.code()) << result.status;
  EXPECT_EQ(ReasonOf(result.status), ReasonOf(put.status)) << result.status;
  EXPECT_EQ(put.status.ok(), result.version != 0);
  return put.status.ok();
}

void GroupPlayer::Update() {
  GroupOptions options = options_.group;
  options.ack_timeout_us = dice_->Draw(kMinAckTimeoutUs, 3 * kSecond);
  if (options_.single_active_changes) {
    options.single_active = dice_->Chance(500);
  }
  if (options_.dead_letters) {
    options.max_attempts = static_cast<int>(dice_->Draw(1, 5));
  }
  const auto change = [&](GroupOptions* to) {
    *to = options;
    return absl::OkStatus();
  };
  const auto updated = map_->groups().Update(name_, change);
  ASSERT_TRUE(updated.ok()) << updated.status();
  reference_->Update(options);
  reference_->CheckLost(group_->GetStatistics());
}

void GroupPlayer::AfterSweep(int64_t now_us) {
  reference_->Append();
  reference_->Advance(now_us);
  const GroupStatistics statistics = group_->GetStatistics();
  reference_->CheckLost(statistics);
  reference_->CheckMemory(statistics);
  reference_->Reprieve(now_us);
}

void GroupPlayer::AfterSqueeze(int64_t now_us) {
  reference_->Advance(now_us);
  reference_->CheckLost(group_->GetStatistics(), /*squeezed=*/true);
}

void GroupPlayer::Drain(const std::function<int64_t(int64_t)>& pass,
                        int64_t now_us) {
  if (members_.empty()) Join();
  while (reference_->unsettled() > 0) {
    const size_t before = reference_->unsettled();
    for (const auto& member : members_) {
      ASSERT_NO_FATAL_FAILURE(SettleAll(*member, now_us));
      ASSERT_NO_FATAL_FAILURE(Take(member.get(), kMaxTake, 1 << 20, now_us));
      ASSERT_NO_FATAL_FAILURE(SettleAll(*member, now_us));
    }
    if (reference_->unsettled() < before) continue;
    // What all of them let time out waits for another one.
    Leave(now_us);
    Join();
    now_us = pass(std::min(reference_->NextDueUs(), now_us + 10 * kSecond));
    if (testing::Test::HasFatalFailure()) return;
  }
}

void GroupPlayer::CheckDeadLetter(uint64_t number, absl::string_view value,
                                  bool put, int64_t now_us) {
  const auto given = given_.find(number);
  ASSERT_NE(given, given_.end());
  const Delivery& delivery = given->second;
  ASSERT_NO_FATAL_FAILURE(
      events_->CheckEvent(number, delivery.event(), delivery.batch->death()));
  // The event without its tag and length, its id, the attempts: watch.proto.
  uint64_t size = 0;
  const char* const body =
      GetVarint(delivery.batch->encoded(delivery.index).data() + 1, &size);
  const absl::string_view event(body, size);
  ASSERT_EQ(value.substr(0, size), event);
  WireReader rest(value.substr(size));
  uint64_t event_id = 0;
  uint64_t attempt = 0;
  ASSERT_TRUE(rest.Skip(WireTag(10, kVarint)) && rest.Varint(&event_id));
  ASSERT_TRUE(rest.Skip(WireTag(11, kVarint)) && rest.Varint(&attempt));
  ASSERT_EQ(event_id, number);
  reference_->CheckDeadLetter(number, static_cast<int>(attempt), put, now_us);
  if (put) given_.erase(number);
}

std::set<int> GroupPlayer::Woken() const {
  std::set<int> woken;
  for (const auto& member : members_) {
    if (member->woken || member->more) woken.insert(member->id);
  }
  return woken;
}

void GroupPlayer::CheckWoken() const { reference_->CheckWoken(Woken()); }

void GroupPlayer::CheckStatistics() const {
  reference_->CheckStatistics(group_->GetStatistics());
}

}  // namespace timecache::server

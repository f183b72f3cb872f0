// What operators see and do of a group's unsettled events.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/base/range_check.h"
#include "server/engine/groups/group_ledger.h"

namespace timecache::server {
namespace {

using Kind = GroupChange::Kind;

UnsettledState StateOf(const UnsettledEvent& event) {
  using State = UnsettledEvent::State;
  switch (event.state) {
    case State::kBlockedByKey:
      return UnsettledState::kBlockedByKey;
    case State::kReady:
      return UnsettledState::kReady;
    case State::kInFlight:
      return UnsettledState::kInFlight;
    case State::kDelayed:
      return UnsettledState::kDelayed;
    case State::kDeadLettering:
      return UnsettledState::kDeadLettering;
    case State::kClaimed:
      // Being put back, or put with the dead letters.
      return event.holder != nullptr ? UnsettledState::kInFlight
                                     : UnsettledState::kDeadLettering;
  }
  return UnsettledState::kReady;
}

absl::Status NotNow(const Settlement& settlement, absl::string_view why) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition,
                         Reason::kStaleAttempt,
                         absl::StrCat("event ", settlement.event_id, " ", why));
}

}  // namespace

// --- Listing.

UnsettledInfo GroupLedger::Describe(const Event& event) {
  UnsettledInfo info;
  info.delivery = event.ToDelivery();
  info.state = StateOf(event);
  if (info.state == UnsettledState::kInFlight) {
    info.member_id = event.holder->id_;
    info.since_us = event.since_us;
  }
  if (info.state != UnsettledState::kReady) info.due_us = event.due_us;
  return info;
}

std::optional<uint64_t> GroupLedger::List(uint64_t from,
                                          const UnsettledQuery& query,
                                          int* steps,
                                          UnsettledPage* page) const {
  const auto full = [&] {
    return *steps <= 0 || static_cast<int>(page->events.size()) >= query.most;
  };
  for (const Event* event = events_.FirstFrom(from); event != nullptr;
       event = events_.FirstFrom(from)) {
    if (full()) return event->id;
    --*steps;
    from = event->id + 1;
    if (absl::StartsWith(event->retained->batch->key(event->index),
                         query.key_prefix)) {
      page->events.push_back(Describe(*event));
    }
  }
  while (const RetainedBatch* const retained = batches_.FreshFrom(from)) {
    const EventBatch& batch = *retained->batch;
    for (int i = std::max(retained->IndexFrom(from), retained->next);
         i < batch.size(); ++i) {
      from = retained->number(i);
      if (full()) return from;
      --*steps;
      ++from;
      const absl::string_view key = batch.key(i);
      if (!absl::StartsWith(key, query.key_prefix)) continue;
      UnsettledInfo info;
      info.delivery = {retained->batch, i, from - 1};
      info.state = events_.HasKey(key) ? UnsettledState::kBlockedByKey
                                       : UnsettledState::kReady;
      page->events.push_back(std::move(info));
    }
  }
  return std::nullopt;
}

// --- Settling.

bool GroupLedger::OpenTo(uint64_t event_id, int most) {
  if (!batches_.IsFresh(event_id)) return false;
  for (; most > 0; --most) {
    if (OpenNext()->id == event_id) return false;
  }
  return true;
}

// Whatever it waits for, unless it is being put elsewhere at this moment.
absl::StatusOr<GroupLedger::Event*> GroupLedger::FindForOperator(
    const Settlement& settlement) const {
  absl::StatusOr<Event*> found = FindUnsettled(settlement);
  if (!found.ok()) return found;
  if (*found == nullptr || (*found)->state == State::kClaimed) {
    return NotNow(settlement,
                  "is being put back, or with the dead letters: try again");
  }
  return found;
}

absl::Status GroupLedger::SettleByOperator(const Settlement& settlement) {
  const int64_t delay_us = settlement.delay_us.value_or(0);
  if (absl::Status status =
          CheckDuration("delay", delay_us, 0, kMaxNackDelayUs);
      !status.ok()) {
    return status;
  }
  const absl::StatusOr<Event*> found = settlement.action == SettleAction::kAck
                                           ? FindUnsettled(settlement)
                                           : FindForOperator(settlement);
  if (!found.ok()) return found.status();
  Event* const event = *found;
  switch (settlement.action) {
    case SettleAction::kAck:
      if (event == nullptr) return NotNow(settlement, "was moved: try again");
      Settle(Kind::kAcked, event);
      ++counts_.acked;
      break;
    case SettleAction::kNack:
      NackByOperator(settlement, event);
      break;
    case SettleAction::kTerminate:
      TerminateByOperator(settlement, event);
      break;
    case SettleAction::kExtend:
      if (event->holder == nullptr) {
        return NotNow(settlement,
                      "is held by no member, who could need longer");
      }
      ++counts_.extended;
      events_.SetDue(event, State::kInFlight,
                     now_us_ + options_.ack_timeout_us);
      break;
    case SettleAction::kPutBack:
      return absl::InternalError("a PUT_BACK is no step of the ledger");
  }
  return absl::OkStatus();
}

void GroupLedger::NackByOperator(const Settlement& settlement, Event* event) {
  const int64_t ready_us = now_us_ + settlement.delay_us.value_or(0);
  if (event->holder != nullptr) {
    ++counts_.nacked;
    Fail(event, FailureReason::kNacked,
         settlement.delay_us.has_value() ? ready_us : RetryUs(*event));
  } else {
    // No attempt ends.
    event->reason = FailureReason::kNacked;
    AppendPast(*event, ready_us);
    MakeReadyAt(event, ready_us);
  }
  SetReason(event, settlement.reason);
}

void GroupLedger::TerminateByOperator(const Settlement& settlement,
                                      Event* event) {
  if (!dead_letters_) {
    Settle(Kind::kTerminated, event);
    ++counts_.terminated;
    return;
  }
  if (event->holder != nullptr) {
    Fail(event, FailureReason::kTerminated, now_us_);
  } else {
    event->reason = FailureReason::kTerminated;
    AppendPast(*event, now_us_);
    MakeReady(event);
  }
  SetReason(event, settlement.reason);
}

void GroupLedger::AppendPast(const Event& event, int64_t ready_us) {
  changes_->Append({.kind = Kind::kPast,
                    .first = event.id,
                    .end = event.id + 1,
                    .ready_us = ready_us,
                    .returns = event.returns,
                    .returned = event.returned,
                    .reason = event.reason});
}

}  // namespace timecache::server

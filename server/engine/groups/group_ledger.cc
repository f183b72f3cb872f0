#include "server/engine/groups/group_ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/check.h"
#include "server/base/error.h"
#include "server/base/range_check.h"

namespace timecache::server {

using Kind = GroupChange::Kind;

GroupStatistics GroupLedger::GetStatistics() const {
  GroupStatistics statistics = counts_;
  if (next_event_.has_value()) {
    statistics.events = *next_event_ - start_event_ + counts_.moved;
  }
  statistics.backlog = batches_.fresh() + events_.size() - counts_.in_flight;
  statistics.backlog_bytes = bytes();
  statistics.oldest_unsettled_us = OldestUs();
  return statistics;
}

void GroupLedger::Append(uint64_t first_event, const SelectedEvents& batch) {
  if (!next_event_.has_value()) {
    early_.emplace_back(first_event, batch);
    return;
  }
  const uint64_t end = first_event + static_cast<uint64_t>(batch.size);
  if (end <= *next_event_) return;
  if (first_event > *next_event_) {
    changes_->AddRange(Kind::kDropped, *next_event_, first_event);
    Lose(first_event - *next_event_);
  }
  const uint64_t first_kept = std::max(first_event, *next_event_);
  next_event_ = end;
  const int next = batch.IndexFrom(static_cast<int>(first_kept - first_event));
  const int count = batch.count() - next;
  // Those of other keys are as if they were before the group.
  start_event_ += end - first_kept - static_cast<uint64_t>(count);
  if (count == 0) return;
  // Never ahead of the clock, as deaths by RotateNamespace may be.
  AdvanceTo(batch.batch->death().published_us - kKillTickUs);
  batches_.Append(first_event, batch.batch, next, batch.places);
}

void GroupLedger::Start(uint64_t first_event, uint64_t inherited) {
  next_event_ = first_event;
  start_event_ = first_event - inherited;
  if (inherited > 0) Lose(inherited);
}

void GroupLedger::TakeEarly() {
  for (const auto& [first, batch] : std::exchange(early_, {})) {
    Append(first, batch);
  }
}

void GroupLedger::Clear() {
  early_.clear();
  events_.Clear();
  batches_.Clear();
  counts_.in_flight = 0;
  counts_.suspects = 0;
  trials_ = 0;
  redelivered_in_flight_ = 0;
  account_->AddInFlight(-std::exchange(counts_.in_flight_bytes, 0));
}

bool GroupLedger::PassTime(int64_t now_us) {
  AdvanceTo(now_us);
  for (int i = 0; i < kMaxTimers; ++i) {
    Event* const event = events_.FirstDue();
    if (event == nullptr || event->due_us > now_us_) return false;
    if (event->state == State::kInFlight) {
      ++counts_.timed_out;
      scheduler_->OnTimeOut(event->holder);
      Fail(event, FailureReason::kTimedOut, RetryUs(*event));
    } else {
      MakeReady(event);
    }
  }
  return true;
}

int64_t GroupLedger::DueUs(bool dead_letters) const {
  int64_t due_us = kNeverUs;
  for (const Event* event :
       {events_.FirstDue(),
        dead_letters ? events_.FirstDeadLettering() : nullptr}) {
    if (event != nullptr) due_us = std::min(due_us, event->due_us);
  }
  return due_us;
}

// Fresh events that may be opened.
uint64_t GroupLedger::Unopened() const {
  return events_.blocked_by_key() < kMaxBlockedByKey ? batches_.fresh() : 0;
}

bool GroupLedger::MayDeliver() const {
  if (options_.paused) return false;
  const int64_t held = counts_.in_flight_bytes;
  return held == 0 || (held < account_->ShareOf(options_.max_backlog_bytes) /
                                  BacklogAccount::kInFlightShare &&
                       account_->HasRoomInFlight(held));
}

MemberScheduler::Supply GroupLedger::Available() const {
  if (!MayDeliver()) return {};
  const ReadyEvents& ready = events_.ready();
  return {ready.unfailed() + Unopened(),
          ready.failed() + std::min<uint64_t>(ready.suspects(), TrialRoom()),
          &ready};
}

bool GroupLedger::MayGet(const GroupMember* member,
                         const Failures& failures) const {
  return (!failures.suspect || TrialRoom() > 0) &&
         scheduler_->MayRetry(member, failures);
}

uint64_t GroupLedger::AvailableTo(const GroupMember* member) const {
  if (!MayDeliver() || !scheduler_->IsActive(member)) return 0;
  const ReadyEvents& ready = events_.ready();
  const ReadyEvents::Count count = ready.CountFailed(
      [&](const Failures& failures) { return MayGet(member, failures); });
  return ready.unfailed() + Unopened() + count.failed +
         std::min(count.suspects, TrialRoom());
}

GroupLedger::Event* GroupLedger::NextFor(const GroupMember* member,
                                         int* may_open) {
  while (MayDeliver()) {
    Event* const event = events_.ready().First(
        [&](const Failures& failures) { return MayGet(member, failures); });
    if (event != nullptr) {
      if (!HasExhaustedAttempts(*event)) return event;
      MakeReady(event);
      continue;
    }
    if (Unopened() == 0 || *may_open <= 0) return nullptr;
    --*may_open;
    OpenNext();
  }
  return nullptr;
}

GroupLedger::Event* GroupLedger::OpenNext() {
  const RetainedBatches::Opened opened = batches_.OpenNext();
  return events_.Open(opened.id, opened.retained, opened.index,
                      opened.retained->batch->key(opened.index));
}

Delivery GroupLedger::Give(Event* event, GroupMember* member) {
  const bool again = event->was_delivered();
  event->holder = member;
  member->held_.Add(event);
  event->since_us = now_us_;
  events_.SetDue(event, State::kInFlight, now_us_ + options_.ack_timeout_us);
  ++counts_.in_flight;
  event->held_bytes =
      static_cast<int64_t>(
          event->retained->batch->encoded(event->index).size()) +
      GroupEvents::kEventBytes;
  AddInFlight(event->held_bytes);
  CountDelivery(again);
  if (again) ++redelivered_in_flight_;
  if (event->is_suspect()) {
    ++member->suspects_;
    ++trials_;
    event->on_trial = true;
  }
  return event->ToDelivery();
}

GroupLedger::Awaiting GroupLedger::FirstAwaitingDelivery() {
  if (const Event* const event = events_.FirstAwaitingDelivery()) {
    return {event->id, event->retained->batch->death_us()};
  }
  const RetainedBatch* const fresh = batches_.FirstFresh();
  if (fresh == nullptr) return {next_event()};
  return {fresh->number(fresh->next), fresh->batch->death_us()};
}

void GroupLedger::CountDelivery(bool again) {
  ++counts_.delivered;
  if (again) ++counts_.redelivered;
}

// Takes it from its member.
void GroupLedger::Release(Event* event) {
  GroupMember* const member = std::exchange(event->holder, nullptr);
  if (member == nullptr) return;
  member->held_.Remove(event);
  if (event->is_suspect()) --member->suspects_;
  EndTrial(event, trial_window_);
  --counts_.in_flight;
  if (event->was_delivered()) --redelivered_in_flight_;
  AddInFlight(-event->held_bytes);
  scheduler_->OnRoom(member);
}

void GroupLedger::AddInFlight(int64_t bytes) {
  counts_.in_flight_bytes += bytes;
  account_->AddInFlight(bytes);
}

void GroupLedger::MakeReady(Event* event) {
  if (HasExhaustedAttempts(*event)) {
    events_.SetDue(event, State::kDeadLettering, now_us_);
  } else {
    events_.SetReady(event);
  }
}

void GroupLedger::MakeReadyAt(Event* event, int64_t ready_us) {
  if (ready_us > now_us_ && !HasExhaustedAttempts(*event)) {
    events_.SetDue(event, State::kDelayed, ready_us);
  } else {
    MakeReady(event);
  }
}

int64_t GroupLedger::OldestUs() const {
  if (const Event* const event = events_.First()) {
    return event->retained->batch->death_us();
  }
  const RetainedBatch* const retained = batches_.FirstFresh();
  return retained == nullptr ? kNeverUs : retained->batch->death_us();
}

// The attempt fails.
void GroupLedger::EndDelivery(Kind kind, const Event& event, int64_t ready_us) {
  changes_->Add(kind, event.id, event.attempt(), ready_us);
}

// The event leaves, and its current attempt ends.
void GroupLedger::Settle(Kind kind, Event* event) {
  changes_->Add(kind, event->id,
                event->holder == nullptr ? 0 : event->attempt());
  Remove(event);
}

void GroupLedger::Remove(Event* event) {
  EndTrial(event, trial_window_ + 1);
  Release(event);
  if (event->is_suspect()) --counts_.suspects;
  RetainedBatch* const retained = event->retained;
  events_.Remove(event);
  batches_.Settled(retained);
}

// --- Settling.

// Whether it is of the latest delivery.
bool GroupLedger::IsCurrent(const Settlement& settlement, const Event& event) {
  return settlement.attempt == event.attempt() &&
         settlement.returns == event.returns;
}

// Whether it is of a delivery in progress when the previous process ended.
bool GroupLedger::IsFromBefore(const Settlement& settlement,
                               const Event& event) {
  return event.holder == nullptr && settlement.attempt == event.attempts + 1 &&
         settlement.returns == event.returns;
}

// Null if too many are before it.
GroupLedger::Event* GroupLedger::OpenForAck(uint64_t event_id) {
  Event* event = nullptr;
  while (event == nullptr && opened_for_acks_ < kMaxOpenedForAcks) {
    ++opened_for_acks_;
    Event* const next = OpenNext();
    if (next->id == event_id) event = next;
  }
  return event;
}

// Null: it has not been delivered since the previous process.
absl::StatusOr<GroupLedger::Event*> GroupLedger::FindUnsettled(
    const Settlement& settlement) const {
  const uint64_t id = settlement.event_id;
  Event* const event = events_.Find(id);
  if (event != nullptr || batches_.IsFresh(id)) return event;
  return ErrorWithReason(
      absl::StatusCode::kNotFound, Reason::kEventNotUnsettled,
      absl::StrCat("event ", id,
                   " does not wait to be settled: it has been settled, is a "
                   "dead letter or lost"));
}

absl::Status GroupLedger::StaleAttempt(const Settlement& settlement) {
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, Reason::kStaleAttempt,
      absl::StrCat("attempt ", settlement.attempt, " of event ",
                   settlement.event_id,
                   " is over: it was not settled in time, or ended with its "
                   "stream or a restart of the server; only an ACK is accepted "
                   "now"));
}

absl::StatusOr<GroupLedger::Event*> GroupLedger::FindInFlight(
    const Settlement& settlement) {
  absl::StatusOr<Event*> found = FindUnsettled(settlement);
  if (!found.ok()) return found;
  Event* const event = *found;
  if (event == nullptr) return StaleAttempt(settlement);
  if (IsCurrent(settlement, *event) && event->state == State::kInFlight) {
    return event;
  }
  // An answer all the same: its member may have the event again.
  if (settlement.action != SettleAction::kExtend) {
    scheduler_->OnSettled(events_.ForgetLate(event, settlement.attempt));
  }
  return StaleAttempt(settlement);
}

GroupLedger::Event* GroupLedger::FindClaimed(uint64_t event_id) const {
  Event* const event = events_.Find(event_id);
  return event != nullptr && event->state == State::kClaimed ? event : nullptr;
}

absl::Status GroupLedger::Settle(const Settlement& settlement) {
  if (settlement.by_operator) return SettleByOperator(settlement);
  switch (settlement.action) {
    case SettleAction::kAck:
      return Ack(settlement);
    case SettleAction::kNack:
      return Nack(settlement);
    case SettleAction::kExtend:
      return Extend(settlement);
    case SettleAction::kTerminate:
      return Terminate(settlement);
    case SettleAction::kPutBack:
      break;
  }
  return absl::InternalError("a PUT_BACK is no step of the ledger");
}

absl::Status GroupLedger::Ack(const Settlement& settlement) {
  const absl::StatusOr<Event*> found = FindUnsettled(settlement);
  if (!found.ok()) return found.status();
  Event* event = *found;
  if (event == nullptr) event = OpenForAck(settlement.event_id);
  if (event == nullptr) return StaleAttempt(settlement);
  if (IsFromBefore(settlement, *event)) {
    CountDelivery(event->was_delivered());
    changes_->Add(Kind::kAcked, event->id, settlement.attempt);
    Remove(event);
  } else {
    CreditSettlement(*event, settlement);
    Settle(Kind::kAcked, event);
  }
  ++counts_.acked;
  return absl::OkStatus();
}

absl::Status GroupLedger::Nack(const Settlement& settlement) {
  const int64_t delay_us = settlement.delay_us.value_or(0);
  if (absl::Status status =
          CheckDuration("delay", delay_us, 0, kMaxNackDelayUs);
      !status.ok()) {
    return status;
  }
  const absl::StatusOr<Event*> found = FindInFlight(settlement);
  if (!found.ok()) return found.status();
  Event* const event = *found;
  ++counts_.nacked;
  CreditSettlement(*event, settlement);
  Fail(event, FailureReason::kNacked,
       settlement.delay_us.has_value() ? now_us_ + delay_us : RetryUs(*event));
  SetReason(event, settlement.reason);
  return absl::OkStatus();
}

absl::Status GroupLedger::Terminate(const Settlement& settlement) {
  const absl::StatusOr<Event*> found = FindInFlight(settlement);
  if (!found.ok()) return found.status();
  Event* const event = *found;
  CreditSettlement(*event, settlement);
  if (dead_letters_) {
    Fail(event, FailureReason::kTerminated, now_us_);
    SetReason(event, settlement.reason);
  } else {
    Settle(Kind::kTerminated, event);
    ++counts_.terminated;
  }
  return absl::OkStatus();
}

// When the event is ready again after its attempt.
int64_t GroupLedger::RetryUs(const Event& event) const {
  return now_us_ + RetryDelayUs(options_, event.id, event.attempt());
}

absl::Status GroupLedger::Extend(const Settlement& settlement) {
  const absl::StatusOr<Event*> event = FindInFlight(settlement);
  if (!event.ok()) return event.status();
  ++counts_.extended;
  EndTrial(*event, trial_window_ + 1);
  events_.SetDue(*event, State::kInFlight, now_us_ + options_.ack_timeout_us);
  return absl::OkStatus();
}

absl::StatusOr<GroupLedger::Event*> GroupLedger::Claim(
    const Settlement& settlement) {
  absl::StatusOr<Event*> event = settlement.by_operator
                                     ? FindForOperator(settlement)
                                     : FindInFlight(settlement);
  if (!event.ok()) return event;
  if (!settlement.by_operator) CreditSettlement(**event, settlement);
  events_.SetClaimed(*event);
  return event;
}

void GroupLedger::EndPutBack(uint64_t event_id, bool done) {
  Event* const event = FindClaimed(event_id);
  // An ACK may have come in between.
  if (event == nullptr) return;
  if (done) {
    Settle(Kind::kPutBack, event);
    ++counts_.put_back;
  } else if (event->holder != nullptr) {
    events_.SetDue(event, State::kInFlight, event->due_us);
  } else {
    MakeReadyAt(event, event->due_us == kNeverUs ? now_us_ : event->due_us);
  }
}

Delivery GroupLedger::ToDeadLetter(const Event& event) {
  Delivery letter = event.ToDelivery();
  letter.attempt = event.attempts;
  letter.reason = event.reason;
  return letter;
}

bool GroupLedger::HasDeadLettering() const {
  const Event* const event = events_.FirstDeadLettering();
  return event != nullptr && event->due_us <= now_us_;
}

GroupLedger::Event* GroupLedger::ClaimDeadLettering() {
  while (HasDeadLettering()) {
    Event* const event = events_.FirstDeadLettering();
    if (HasExhaustedAttempts(*event)) {
      events_.SetClaimed(event);
      return event;
    }
    // The options have changed.
    if (event->reason == FailureReason::kTerminated) {
      Settle(Kind::kTerminated, event);
      ++counts_.terminated;
    } else {
      events_.SetReady(event);
    }
  }
  return nullptr;
}

void GroupLedger::EndDeadLetter(uint64_t event_id, DeadLetterOutcome outcome) {
  if (outcome != DeadLetterOutcome::kPut) ++counts_.dead_letter_failures;
  if (outcome == DeadLetterOutcome::kDenied) ++counts_.dead_letters_denied;
  Event* const event = FindClaimed(event_id);
  // An ACK may have come in between.
  if (event == nullptr) return;
  switch (outcome) {
    case DeadLetterOutcome::kPut:
      Settle(Kind::kDeadLettered, event);
      ++counts_.dead_lettered;
      return;
    case DeadLetterOutcome::kTryAgain:
    case DeadLetterOutcome::kDenied:
      events_.SetDue(event, State::kDeadLettering,
                     now_us_ + options_.ack_timeout_us);
      return;
    case DeadLetterOutcome::kNeverFits:
      Settle(Kind::kLetterDropped, event);
      ++counts_.dead_letters_dropped;
      Lose(1);
      return;
  }
}

}  // namespace timecache::server

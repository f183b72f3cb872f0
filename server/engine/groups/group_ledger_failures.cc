// What a group's ledger makes of deliveries that end without a settlement.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/groups/group_ledger.h"

namespace timecache::server {

using Kind = GroupChange::Kind;

namespace {

Kind KindOf(FailureReason reason) {
  if (reason == FailureReason::kNacked) return Kind::kNacked;
  return reason == FailureReason::kTimedOut ? Kind::kTimedOut : Kind::kGivenUp;
}

}  // namespace

// The attempt counts, and the event is ready again at `ready_us`, unless it was
// the last one.
void GroupLedger::Fail(Event* event, FailureReason reason, int64_t ready_us) {
  const MemberId member = event->holder->id_;
  const int attempt = event->attempt();
  if (dead_letters_ && attempt >= options_.max_attempts) ready_us = now_us_;
  EndDelivery(KindOf(reason), *event, ready_us);
  EndTrial(event, trial_window_ + 1);
  Release(event);
  event->attempts = attempt;
  event->returned = false;
  event->reason = reason;
  events_.SetReason(event, nullptr);
  SetSuspect(event, false);
  NoteFailed(event, member, attempt);
  MakeReadyAt(event, ready_us);
}

void GroupLedger::SetReason(Event* event, absl::string_view text) {
  if (text.empty()) return;
  events_.SetReason(event, std::make_shared<const std::string>(text));
  changes_->Append({.kind = Kind::kReason,
                    .first = event->id,
                    .end = event->id + 1,
                    .reason_text = text});
}

// Its member rejected it, or did not settle it in time, and may then still be
// busy with it. A caller of a fetch is no member.
void GroupLedger::NoteFailed(Event* event, MemberId member, int attempt) {
  FailedAttempts* const failed = event->MutableFailed();
  Failures& failures = failed->failures;
  if (event->reason != FailureReason::kTimedOut) {
    failures.rejected_by = member;
    return;
  }
  failures.rejected_by = 0;
  size_t kept = 0;
  for (size_t i = 0; i < failures.late.size(); ++i) {
    if (!scheduler_->IsMember(failures.late[i])) continue;
    failures.late[kept] = failures.late[i];
    failed->late_attempts[kept++] = failed->late_attempts[i];
  }
  failures.late.resize(kept);
  failed->late_attempts.resize(kept);
  if (!scheduler_->IsMember(member)) return;
  failures.late.push_back(member);
  failed->late_attempts.push_back(attempt);
}

// The event may be what ended its member's stream. Returns when it may be
// delivered again.
int64_t GroupLedger::RaiseSuspicion(Event* event) {
  ++event->suspicion;
  const int more = event->suspicion - kSuspectReturns;
  if (more < 0) return now_us_;
  SetSuspect(event, true);
  ++suspected_;
  if (!last_suspect_.has_value() || last_suspect_->returns <= event->returns) {
    last_suspect_ = Suspect{
        std::string(event->retained->batch->key(event->index)), event->returns};
  }
  last_suspect_->times = suspected_;
  return now_us_ +
         (more > 10 ? kMaxSuspectPauseUs
                    : std::min(kMinSuspectPauseUs << more, kMaxSuspectPauseUs));
}

// Of an event that is not ready.
void GroupLedger::SetSuspect(Event* event, bool suspect) {
  if (!suspect) event->suspicion = 0;
  if (event->is_suspect() == suspect) return;
  event->MutableFailed()->failures.suspect = suspect;
  // What went well with others says nothing of the first of new ones.
  if (suspect && counts_.suspects == 0) trial_window_ = 1;
  counts_.suspects += suspect ? 1 : -1;
}

void GroupLedger::EndTrial(Event* event, uint64_t window) {
  if (!std::exchange(event->on_trial, false)) return;
  --trials_;
  trial_window_ = std::min<uint64_t>(window, kMaxTrials);
}

// The member of this attempt settles it, in time or late.
void GroupLedger::CreditSettlement(const Event& event,
                                   const Settlement& settlement) {
  if (event.holder != nullptr && IsCurrent(settlement, event)) {
    scheduler_->OnSettled(event.holder->id_);
    return;
  }
  if (event.failed == nullptr) return;
  const std::vector<int>& attempts = event.failed->late_attempts;
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (settlement.attempt == attempts[i]) {
      scheduler_->OnSettled(event.failures().late[i]);
    }
  }
}

bool GroupLedger::GiveBack(GroupMember* member, Suspected suspected, int most) {
  for (; most > 0; --most) {
    Event* const event = member->held_.front();
    if (event == nullptr) return false;
    Return(event,
           suspected == Suspected::kAll ||
               (suspected == Suspected::kSuspects && event->is_suspect()));
  }
  return true;
}

void GroupLedger::GiveBack(const GroupMember& holder,
                           const GroupMember::Fetched& fetched) {
  Event* const event = events_.Find(fetched.event_id);
  if (event != nullptr && event->holder == &holder &&
      event->attempt() == fetched.attempt &&
      event->returns == fetched.returns) {
    Return(event, false);
  }
}

// Its delivery ends, which does not count as an attempt.
void GroupLedger::Return(Event* event, bool suspect) {
  if (suspect && event->is_suspect()) {
    EndTrial(event, 1);
    // Also if it was extended before.
    trial_window_ = 1;
  }
  // The change names the delivery that ends.
  const int attempt = event->attempt();
  Release(event);
  ++event->returns;
  event->returned = true;
  ++counts_.returned;
  const int64_t ready_us = suspect ? RaiseSuspicion(event) : now_us_;
  changes_->Add(Kind::kReturned, event->id, attempt, ready_us);
  EndHolding(event, ready_us);
}

// It has been released, and no attempt has ended.
void GroupLedger::EndHolding(Event* event, int64_t ready_us) {
  if (event->state == State::kInFlight) {
    MakeReadyAt(event, ready_us);
  } else {
    // Being put back: ready, if that fails.
    event->due_us = kNeverUs;
  }
}

}  // namespace timecache::server

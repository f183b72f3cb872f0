// The part of a group's ledger that writes it to a sink again, and rebuilds it.

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/engine/groups/group_ledger.h"

namespace timecache::server {
namespace {

// The index after the last event of the batch that is not kept.
int BehindSettled(const KeptBatch& kept) {
  int i = static_cast<int>(kept.settled.size());
  while (i > 0 && !kept.settled[static_cast<size_t>(i) - 1]) --i;
  return i;
}

// The number after the last event that cannot be fresh: that was delivered, or
// is before one that is settled.
uint64_t EndOfOpened(const GroupState& state) {
  uint64_t end =
      state.delivered.empty() ? 0 : std::prev(state.delivered.end())->first + 1;
  for (const KeptBatch& kept : state.kept) {
    int i = BehindSettled(kept);
    while (i > 0 && !kept.keeps(i - 1)) --i;
    if (i > 0) end = std::max(end, kept.number(i - 1) + 1);
  }
  return end;
}

}  // namespace

// --- Rebuilding.

void GroupLedger::Restore(const GroupState& state, int64_t now_us) {
  AdvanceTo(now_us);
  counts_ = state.counts;
  start_event_ = state.first_event;
  next_event_ = state.next_event;
  unreported_lost_ = state.unreported;
  const uint64_t opened = EndOfOpened(state);
  for (const KeptBatch& kept : state.kept) Restore(kept, state, opened);
}

void GroupLedger::Restore(const KeptBatch& kept, const GroupState& state,
                          uint64_t opened) {
  const int end = std::max(kept.IndexFrom(opened), BehindSettled(kept));
  int first = 0;
  while (first < end && !kept.keeps(first)) ++first;
  std::shared_ptr<const std::vector<uint32_t>> places;
  if (!kept.places.empty()) {
    places = std::make_shared<const std::vector<uint32_t>>(kept.places);
  }
  batches_.Append(kept.first, kept.batch, first == end ? end : 0,
                  std::move(places));
  if (first == end) return;
  for (int i = 0; i < end; ++i) {
    const RetainedBatches::Opened opened = batches_.OpenNext();
    if (kept.keeps(i)) {
      Reopen(opened, kept.number(i), state);
    } else {
      batches_.Settled(opened.retained);
    }
  }
}

void GroupLedger::Reopen(const RetainedBatches::Opened& opened, uint64_t number,
                         const GroupState& state) {
  Event* const event = events_.Open(number, opened.retained, opened.index,
                                    opened.retained->batch->key(opened.index));
  const auto it = state.delivered.find(number);
  if (it == state.delivered.end()) return;
  const PastDeliveries& past = it->second;
  event->attempts = past.attempts;
  event->returns = past.returns;
  event->returned = past.returned;
  event->reason = past.reason;
  if (past.reason_text != nullptr) {
    events_.SetReason(event, past.reason_text);
  }
  // Behind another one also if only their hashes are the same in this process.
  if (event->state != State::kReady && !HasExhaustedAttempts(*event)) return;
  if (past.ready_us > now_us_) {
    events_.SetDue(event, State::kDelayed, past.ready_us);
  } else {
    MakeReady(event);
  }
}

// --- Writing again.

void GroupLedger::Describe(GroupChange* change) const {
  change->options = options_;
  change->first = start_event_;
  change->end = next_event();
  change->statistics = counts_;
  change->statistics.delivered -= counts_.in_flight;
  change->statistics.redelivered -= redelivered_in_flight_;
  change->statistics.in_flight = 0;
  change->statistics.in_flight_bytes = 0;
  change->unreported = unreported_lost_;
}

std::optional<uint64_t> GroupLedger::AppendKept(uint64_t from, int* events,
                                                int64_t* bytes) {
  while (const Event* const event = events_.FirstFrom(from)) {
    if (*events <= 0 || *bytes <= 0) return event->id;
    --*events;
    *bytes -=
        AppendKept(event->id, *event->retained->batch, event->index, event);
    from = event->id + 1;
  }
  while (const RetainedBatch* const retained = batches_.FreshFrom(from)) {
    const int index = std::max(retained->IndexFrom(from), retained->next);
    from = retained->number(index);
    if (*events <= 0 || *bytes <= 0) return from;
    --*events;
    *bytes -= AppendKept(from, *retained->batch, index, nullptr);
    ++from;
  }
  return std::nullopt;
}

// `event` is null for a fresh one. Returns the approximate number of bytes
// written.
int64_t GroupLedger::AppendKept(uint64_t number, const EventBatch& batch,
                                int index, const Event* event) {
  GroupChange change;
  change.kind = GroupChange::Kind::kKept;
  change.first = number;
  change.end = number + 1;
  change.event = batch.event(index);
  change.death = batch.death();
  change.ready_us = batch.death_us();
  if (event != nullptr) {
    change.attempt = event->attempts;
    if (event->state == State::kDelayed) change.ready_us = event->due_us;
  }
  changes_->Append(change);
  if (event != nullptr && event->was_delivered()) {
    changes_->Append({.kind = GroupChange::Kind::kPast,
                      .first = number,
                      .end = number + 1,
                      .ready_us = change.ready_us,
                      .returns = event->returns,
                      .returned = event->returned,
                      .reason = event->reason});
    if (event->failed != nullptr && event->failed->reason_text != nullptr) {
      changes_->Append({.kind = GroupChange::Kind::kReason,
                        .first = number,
                        .end = number + 1,
                        .reason_text = *event->failed->reason_text});
    }
  }
  return static_cast<int64_t>(batch.encoded(index).size());
}

}  // namespace timecache::server

// Moves a group's ledger to another place of the log.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "server/engine/groups/group_ledger.h"

namespace timecache::server {

// As if it had not been delivered yet.
void GroupLedger::Forget(Event* event) {
  const bool claimed = event->state == State::kClaimed;
  // Out of the orders, which depend on what follows.
  if (!claimed) events_.SetClaimed(event);
  SetSuspect(event, false);
  events_.SetReason(event, nullptr);
  event->failed.reset();
  event->attempts = 0;
  event->returns = 0;
  event->returned = false;
  event->reason = FailureReason::kUnknown;
  event->due_us = kNeverUs;
  if (!claimed) events_.SetReady(event);
}

// No member has any event, and `*ended` counts the deliveries that this ends.
void GroupLedger::EndDeliveries(GroupStatistics* ended) {
  const auto in_flight = static_cast<size_t>(counts_.in_flight);
  std::vector<Event*> held;
  events_.Visit([&](Event* event) {
    if (held.size() == in_flight) return false;
    if (event->holder != nullptr) held.push_back(event);
    return true;
  });
  for (Event* const event : held) {
    ++ended->delivered;
    if (event->was_delivered()) ++ended->redelivered;
    Release(event);
    EndHolding(event, now_us_);
  }
}

// None of the opened events stays.
void GroupLedger::RemoveOpened(std::vector<std::shared_ptr<const void>>* gone) {
  gone->push_back(events_.TakeAll());
  batches_.SettleAll(gone);
  counts_.suspects = 0;
}

uint64_t GroupLedger::Seek(const LogPlace& place, bool drop,
                           const std::vector<ExpiryLog::Followed>& retained,
                           std::vector<std::shared_ptr<const void>>* gone) {
  const uint64_t before = batches_.fresh() + events_.size();
  const uint64_t events = *next_event_ - start_event_ + counts_.moved;
  uint64_t dropped = 0;
  // What nothing else records: deliveries that end, and what is dropped.
  GroupStatistics ended;
  EndDeliveries(&ended);
  // From before the place that the log still has.
  uint64_t still = 0;
  const Event* const staying = events_.FirstFrom(drop ? place.asked : 0);
  Event* event = events_.FirstFrom(drop ? 0 : place.asked);
  if (staying == nullptr || staying->id >= place.first) {
    if (drop) dropped = events_.CountBefore(place.asked);
    RemoveOpened(gone);
    event = nullptr;
  }
  while (event != nullptr) {
    const uint64_t id = event->id;
    if (id >= place.first) {
      Remove(event);
    } else if (id >= place.asked) {
      Forget(event);
      ++still;
    } else {
      Remove(event);
      ++dropped;
    }
    event = events_.FirstFrom(id + 1);
  }
  events_.AwaitFromFirst();
  if (drop) dropped += batches_.DropFreshBefore(place.asked);
  batches_.CutFrom(place.first);
  uint64_t lost = 0;
  if (place.first > place.asked) {
    still += batches_.CountFreshFrom(place.asked);
    lost = place.first - place.asked - still;
  }
  for (const ExpiryLog::Followed& each : retained) {
    if (each.events.count() == 0) continue;
    batches_.Append(each.first_event, each.events.batch, 0, each.events.places);
  }
  // Without drop, what has died and is not in the log yet stays the group's.
  if (drop || place.first < *next_event_) {
    next_event_ = std::max(place.first, place.end);
  }
  ended.skipped = dropped;
  changes_->Append({.kind = GroupChange::Kind::kSeek,
                    .id = *next_event_,
                    .first = place.asked,
                    .end = place.first,
                    .attempt = drop ? 1 : 0,
                    .statistics = ended,
                    .unreported = lost});
  Lose(lost);
  start_event_ = *next_event_;
  counts_.skipped += dropped;
  counts_.moved =
      events + (batches_.fresh() + events_.size() + dropped - before) + lost;
  return dropped;
}

}  // namespace timecache::server

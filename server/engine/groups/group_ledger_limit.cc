// Drops events, and reports them as lost, to keep a group within its limit.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "server/base/check.h"
#include "server/engine/groups/group_ledger.h"

namespace timecache::server {

using Kind = GroupChange::Kind;

uint64_t GroupLedger::TakeLost() {
  if (unreported_lost_ > 0) changes_->Append({.kind = Kind::kLossReported});
  return std::exchange(unreported_lost_, 0);
}

void GroupLedger::Lose(uint64_t events) {
  counts_.lost += events;
  unreported_lost_ += events;
}

uint64_t GroupLedger::Unsettled() const {
  return batches_.fresh() + events_.size() + unreported_lost_;
}

bool GroupLedger::Drop(EventHolder::Kind kind, int64_t bytes) {
  const int64_t before = this->bytes();
  const int64_t limit = std::max<int64_t>(before - bytes, 0);
  if (kind == EventHolder::Kind::kHeld) {
    RetainedBatch* retained = batches_.Oldest();
    while (this->bytes() > limit && retained != nullptr) {
      RetainedBatch* const after = batches_.After(retained);
      DropBatch(retained, true);
      retained = after;
    }
  } else {
    TrimTo(limit);
  }
  return this->bytes() < before;
}

void GroupLedger::TrimTo(int64_t limit_bytes) {
  RetainedBatch* retained = batches_.Oldest();
  // All batches after the first with fresh events are fresh.
  for (; bytes() > limit_bytes && retained != nullptr && retained->fresh() == 0;
       retained = batches_.After(retained)) {
    // With less than half of its events left, a copy is worthwhile: each halves
    // the memory.
    if (2 * retained->unsettled <= retained->batch->size()) {
      Shrink(retained);
    }
  }
  retained = batches_.Oldest();
  while (bytes() > limit_bytes && retained != nullptr &&
         !batches_.IsNewest(retained)) {
    RetainedBatch* const after = batches_.After(retained);
    DropBatch(retained, false);
    retained = after;
  }
}

// Removes settled events from a retained batch.
void GroupLedger::Shrink(RetainedBatch* retained) {
  if (retained->unsettled == retained->batch->size()) return;
  std::vector<Event*> events;
  std::vector<int> indexes;
  for (Event* event = events_.FirstFrom(retained->first);
       event != nullptr && event->retained == retained;
       event = events_.FirstFrom(event->id + 1)) {
    events.push_back(event);
    indexes.push_back(event->index);
  }
  TIMECACHED_CHECK(static_cast<int>(events.size()) == retained->unsettled);
  if (!batches_.Shrink(retained, indexes)) return;
  for (size_t i = 0; i < events.size(); ++i) {
    events[i]->index = static_cast<int>(i);
  }
}

void GroupLedger::DropBatch(RetainedBatch* retained, bool also_held) {
  const uint64_t first = retained->first;
  const auto unsettled = static_cast<size_t>(retained->unsettled);
  // Fresh ones are recorded by their numbers, which may have gaps. The batch is
  // gone if there is nothing else in it.
  std::vector<std::pair<uint64_t, uint64_t>> fresh;
  for (int i = retained->next; i < retained->batch->size(); ++i) {
    const uint64_t number = retained->number(i);
    if (retained->places == nullptr) {
      fresh.emplace_back(number,
                         number + static_cast<uint64_t>(retained->fresh()));
      break;
    }
    if (fresh.empty() || fresh.back().second != number) {
      fresh.emplace_back(number, number);
    }
    ++fresh.back().second;
  }
  const uint64_t lost = batches_.DropFresh(retained);
  std::vector<Event*> dropped;
  for (Event* event = events_.FirstFrom(first);
       event != nullptr && event->retained == retained;
       event = events_.FirstFrom(event->id + 1)) {
    const bool held = event->state == State::kInFlight;
    // Claimed events are being put elsewhere.
    if (event->state != State::kClaimed && (also_held || !held)) {
      dropped.push_back(event);
    }
  }
  Lose(lost + dropped.size());
  for (Event* event : dropped) Settle(Kind::kDropped, event);
  for (const auto& [from, end] : fresh) {
    changes_->AddRange(Kind::kDropped, from, end);
  }
  if (dropped.size() < unsettled) Shrink(retained);
}

}  // namespace timecache::server

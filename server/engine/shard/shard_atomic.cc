// The part of a shard that takes part in atomic batches: its operations are
// checked first, as if they were applied, and then applied.

#include <utility>

#include "server/base/check.h"
#include "server/engine/shard/shard.h"

namespace timecache::server {

bool Shard::BeginAtomicLocked(int64_t now_us, size_t operations) {
  Observe(now_us);
  memory_ = MemoryBudget::Process().level();
  atomic_ = Atomic::kChecking;
  counts_before_ = operations_;
  return slots_.HasRoomFor(operations) && segments_.HasRoomFor(operations);
}

Usage::Amount Shard::CheckedAtomicLocked() {
  operations_ = counts_before_;
  return {std::exchange(uncharged_entries_, 0),
          std::exchange(uncharged_bytes_, 0)};
}

void Shard::BeginApplyLocked(size_t operations, ChangeSink* sink,
                             std::unique_ptr<AtomicWatch>* watch) {
  atomic_ = Atomic::kApplying;
  if (sink != nullptr) sink_ = sink;
  if (change_watch_ != nullptr) change_watch_->BeginAtomic(operations, watch);
}

int64_t Shard::ApplyAtomicLocked(const Item& item, ResponseBudget* room) {
  const Outcome outcome = ApplyOne(*item.op, item.hash, room, item.result);
  // What is visible and stored is never a part.
  TIMECACHED_CHECK(outcome.hit == LimitHit::kNone && item.result->status.ok());
  return outcome.new_death_us;
}

Usage::Amount Shard::EndAtomicLocked(ChangeSink* sink) {
  if (atomic_ == Atomic::kApplying && change_watch_ != nullptr) {
    change_watch_->EndAtomic();
  }
  atomic_ = Atomic::kNone;
  sink_ = sink;
  return {std::exchange(uncharged_entries_, 0),
          std::exchange(uncharged_bytes_, 0)};
}

}  // namespace timecache::server

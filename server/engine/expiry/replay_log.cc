// The part of an expiry log that rebuilds it, and that is about restarts.

#include <algorithm>
#include <iterator>
#include <utility>

#include "server/base/memory_budget.h"
#include "server/engine/expiry/expiry_log.h"

namespace timecache::server {

void ExpiryLog::HoldUntil(int64_t until_us) {
  absl::MutexLock lock(&mu_);
  hold_until_us_ = until_us;
}

void ExpiryLog::SkipTime(int64_t us) {
  absl::MutexLock lock(&mu_);
  for (Retained& retained : retained_) retained.appended_us += us;
}

void ExpiryLog::SetReplaying(bool replaying) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  replaying_ = replaying;
  if (replaying) return;
  DropBeforeLocked(replayed_from_, &dropped);
  if (retained_.empty() || retained_.front().first_seq >= replayed_from_) {
    return;
  }
  Retained oldest = retained_.front();
  oldest.batch =
      oldest.batch->Part(static_cast<int>(replayed_from_ - oldest.first_seq),
                         oldest.batch->size());
  oldest.first_seq = replayed_from_;
  DropOldest(&dropped);
  PushFront(std::move(oldest));
}

void ExpiryLog::DropBefore(uint64_t event) {
  Dropped dropped;
  absl::MutexLock lock(&mu_);
  replayed_from_ = std::max(replayed_from_, event);
  DropBeforeLocked(event, &dropped);
}

void ExpiryLog::DropBeforeLocked(uint64_t event, Dropped* dropped) {
  while (!retained_.empty() && retained_.front().end_seq() <= event) {
    DropOldest(dropped);
  }
}

std::optional<ExpiryLog::Retained> ExpiryLog::LastBefore(uint64_t event) const {
  absl::MutexLock lock(&mu_);
  const auto after = std::partition_point(
      retained_.begin(), retained_.end(),
      [event](const Retained& r) { return r.first_seq < event; });
  if (after == retained_.begin()) return std::nullopt;
  return *std::prev(after);
}

void ExpiryLog::Restore(Retained retained) {
  absl::MutexLock lock(&mu_);
  const uint64_t oldest = RetainedEventLocked();
  if (retained.first_seq >= oldest || retained.end_seq() < oldest) return;
  if (retained.end_seq() > oldest) {
    retained.batch =
        retained.batch->Part(0, static_cast<int>(oldest - retained.first_seq));
  }
  PushFront(std::move(retained));
}

void ExpiryLog::PushFront(Retained retained) {
  bytes_ += retained.batch->bytes();
  MemoryBudget::Process().AddRetained(retained.batch->bytes());
  retained_.push_front(std::move(retained));
}

}  // namespace timecache::server

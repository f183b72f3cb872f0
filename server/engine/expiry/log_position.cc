// The part of an expiry log that is about the positions of its followers.

#include <algorithm>
#include <string>
#include <utility>

#include "server/engine/expiry/expiry_log.h"

namespace timecache::server {

uint64_t ExpiryLog::Follow(Follower* follower, Start start, uint64_t pending) {
  return FollowAt(follower, start, pending,
                  start == Start::kEarliest
                      ? SelectRetained(follower->key_prefix())
                      : Selections(follower->key_prefix()))
      ->first;
}

absl::StatusOr<LogPlace> ExpiryLog::FollowAt(Follower* follower,
                                             const LogPosition& position,
                                             uint64_t pending,
                                             const Selections& made) {
  absl::MutexLock lock(&mu_);
  absl::StatusOr<LogPlace> place = Locate(position, pending);
  if (!place.ok()) return place;
  followers_.push_back(follower);
  const bool selects = !follower->key_prefix().empty();
  if (selects) ++selecting_;
  for (const Followed& each : RetainedFromLocked(place->first, made)) {
    if (selects) {
      follower->OnAppendSelected(each.first_event, each.events);
    } else {
      follower->OnAppend(each.first_event, each.events.batch);
    }
  }
  return place;
}

absl::StatusOr<LogPlace> ExpiryLog::MoveTo(const LogPosition& position,
                                           uint64_t pending,
                                           const Selections& made, Move move) {
  absl::MutexLock lock(&mu_);
  absl::StatusOr<LogPlace> place = Locate(position, pending);
  if (place.ok()) move(*place, RetainedFromLocked(place->first, made));
  return place;
}

absl::StatusOr<LogPlace> ExpiryLog::Locate(const LogPosition& position,
                                           uint64_t pending) const {
  const uint64_t end = next_seq_ + pending;
  switch (position.kind) {
    case LogPosition::Kind::kStart:
      break;
    case LogPosition::Kind::kTime: {
      const auto after = std::partition_point(
          retained_.begin(), retained_.end(), [&position](const Retained& r) {
            return r.batch->death_us() <= position.time_us;
          });
      const uint64_t first = after == retained_.end() ? end : after->first_seq;
      return LogPlace{first, first, next_seq_};
    }
    case LogPosition::Kind::kPoint: {
      if (absl::Status status = CheckPoint(position.point, pending);
          !status.ok()) {
        return status;
      }
      const uint64_t asked = position.point.next_event;
      return LogPlace{asked, std::max(asked, RetainedEventLocked()), next_seq_};
    }
  }
  const uint64_t first =
      position.start == Start::kNow ? end : RetainedEventLocked();
  return LogPlace{first, first, next_seq_};
}

std::vector<ExpiryLog::Followed> ExpiryLog::RetainedFrom(
    uint64_t event, const Selections& made) const {
  absl::MutexLock lock(&mu_);
  return RetainedFromLocked(event, made);
}

std::vector<ExpiryLog::Followed> ExpiryLog::RetainedFromLocked(
    uint64_t event, const Selections& made) const {
  std::vector<Followed> followed;
  auto it = std::partition_point(
      retained_.begin(), retained_.end(),
      [event](const Retained& r) { return r.end_seq() <= event; });
  for (; it != retained_.end(); ++it) {
    SelectedEvents events = made.Of(it->batch);
    uint64_t first = it->first_seq;
    if (first < event) {
      events = events.From(static_cast<int>(event - first));
      first = event;
    }
    followed.push_back({first, std::move(events)});
  }
  return followed;
}

Selections ExpiryLog::SelectRetained(absl::string_view key_prefix) const {
  Selections made(key_prefix);
  if (key_prefix.empty()) return made;
  std::vector<std::shared_ptr<const EventBatch>> batches;
  {
    absl::MutexLock lock(&mu_);
    for (const Retained& retained : retained_) {
      batches.push_back(retained.batch);
    }
  }
  for (const auto& batch : batches) made.Make(batch);
  return made;
}

// One of each key_prefix that a follower has.
std::vector<Selections> ExpiryLog::SelectNew(
    const std::shared_ptr<const EventBatch>& batch) const {
  std::vector<Selections> selections;
  if (selecting_.load(std::memory_order_relaxed) == 0) return selections;
  {
    absl::MutexLock lock(&mu_);
    for (const Follower* const follower : followers_) {
      const absl::string_view prefix = follower->key_prefix();
      const auto same = [prefix](const Selections& each) {
        return each.key_prefix() == prefix;
      };
      if (!prefix.empty() &&
          std::none_of(selections.begin(), selections.end(), same)) {
        selections.emplace_back(prefix);
      }
    }
  }
  for (Selections& each : selections) each.Make(batch);
  return selections;
}

}  // namespace timecache::server

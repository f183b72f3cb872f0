#include "server/engine/groups/group_ready.h"

#include <tuple>

#include "server/engine/groups/group_events.h"

namespace timecache::server {

bool Failures::operator<(const Failures& other) const {
  return std::tie(suspect, rejected_by, late) <
         std::tie(other.suspect, other.rejected_by, other.late);
}

void ReadyEvents::AddUnfailed(UnsettledEvent* event) {
  if (first_ != nullptr && first_->id < event->id) {
    unfailed_.emplace(event->id, event);
    return;
  }
  if (first_ != nullptr) unfailed_.emplace(first_->id, first_);
  first_ = event;
}

void ReadyEvents::RemoveUnfailed(UnsettledEvent* event) {
  if (event != first_) {
    unfailed_.erase(event->id);
    return;
  }
  const auto next = unfailed_.begin();
  first_ = next == unfailed_.end() ? nullptr : next->second;
  if (first_ != nullptr) unfailed_.erase(next);
}

void ReadyEvents::Add(UnsettledEvent* event) {
  if (event->failures().none()) return AddUnfailed(event);
  const auto it = failed_.try_emplace(event->failures()).first;
  Events& events = it->second;
  if (events.empty() || event->id < events.begin()->first) {
    if (!events.empty()) firsts_.erase(events.begin()->first);
    firsts_.emplace(event->id, &*it);
  }
  events.emplace(event->id, event);
  ++failed_size_;
  if (event->is_suspect()) ++suspects_;
}

void ReadyEvents::Remove(UnsettledEvent* event) {
  if (event->failures().none()) return RemoveUnfailed(event);
  const auto it = failed_.find(event->failures());
  Events& events = it->second;
  const bool was_first = events.begin()->first == event->id;
  events.erase(event->id);
  --failed_size_;
  if (event->is_suspect()) --suspects_;
  if (!was_first) return;
  firsts_.erase(event->id);
  if (events.empty()) {
    failed_.erase(it);
  } else {
    firsts_.emplace(events.begin()->first, &*it);
  }
}

ReadyEvents::Count ReadyEvents::CountFailed(May may) const {
  Count count;
  for (const auto& [failures, events] : failed_) {
    if (!may(failures)) continue;
    (failures.suspect ? count.suspects : count.failed) += events.size();
  }
  return count;
}

bool ReadyEvents::HasFailed(May may) const {
  for (const auto& [failures, events] : failed_) {
    if (may(failures)) return true;
  }
  return false;
}

UnsettledEvent* ReadyEvents::First(May may) const {
  for (const auto& [first, of] : firsts_) {
    if (first_ != nullptr && first_->id < first) break;
    if (may(of->first)) return of->second.begin()->second;
  }
  return first_;
}

}  // namespace timecache::server

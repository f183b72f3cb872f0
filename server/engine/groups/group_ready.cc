#include "server/engine/groups/group_ready.h"

#include <tuple>

#include "server/engine/groups/group_events.h"

namespace timecache::server {

bool Failures::operator<(const Failures& other) const {
  return std::tie(suspect, rejected_by, late) <
         std::tie(other.suspect, other.rejected_by, other.late);
}

void ReadyEvents::Add(UnsettledEvent* event) {
  if (event->failures().none()) {
    unfailed_.emplace(event->id, event);
    return;
  }
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
  if (event->failures().none()) {
    unfailed_.erase(event->id);
    return;
  }
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
  UnsettledEvent* const unfailed =
      unfailed_.empty() ? nullptr : unfailed_.begin()->second;
  for (const auto& [first, of] : firsts_) {
    if (unfailed != nullptr && unfailed->id < first) break;
    if (may(of->first)) return of->second.begin()->second;
  }
  return unfailed;
}

}  // namespace timecache::server

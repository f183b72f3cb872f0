#include "server/engine/groups/group_ready.h"

#include "server/engine/groups/group_events.h"

namespace timecache::server {

void ReadyEvents::Add(UnsettledEvent* event) {
  if (event->failed_by == 0) {
    unfailed_.emplace(event->id, event);
    return;
  }
  Events& events = failed_[event->failed_by];
  const uint64_t first = events.empty() ? UINT64_MAX : events.begin()->first;
  if (event->id < first) {
    firsts_.erase({first, event->failed_by});
    firsts_.emplace(event->id, event->failed_by);
  }
  events.emplace(event->id, event);
  ++failed_size_;
}

void ReadyEvents::Remove(UnsettledEvent* event) {
  if (event->failed_by == 0) {
    unfailed_.erase(event->id);
    return;
  }
  const auto it = failed_.find(event->failed_by);
  Events& events = it->second;
  const bool was_first = events.begin()->first == event->id;
  events.erase(event->id);
  --failed_size_;
  if (!was_first) return;
  firsts_.erase({event->id, event->failed_by});
  if (events.empty()) {
    failed_.erase(it);
  } else {
    firsts_.emplace(events.begin()->first, event->failed_by);
  }
}

size_t ReadyEvents::failed_by(MemberId member) const {
  const auto it = failed_.find(member);
  return it == failed_.end() ? 0 : it->second.size();
}

UnsettledEvent* ReadyEvents::FirstNotFailedBy(MemberId member) const {
  UnsettledEvent* const unfailed = FirstUnfailed();
  auto it = firsts_.begin();
  if (member != 0 && it != firsts_.end() && it->second == member) ++it;
  if (it == firsts_.end()) return unfailed;
  if (unfailed != nullptr && unfailed->id < it->first) return unfailed;
  return FirstOf(failed_.find(it->second)->second);
}

}  // namespace timecache::server

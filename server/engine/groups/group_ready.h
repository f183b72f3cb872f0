// The events of a consumer group that wait to be delivered.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_READY_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_READY_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"

namespace timecache::server {

struct UnsettledEvent;

// A stream's part in a group has a number, from 1 on; 0 is none.
using MemberId = uint64_t;

// Events in the order of their numbers, apart by the member that failed them
// last (UnsettledEvent::failed_by): they must not be delivered to that member
// again.
//
// Not thread-safe. A change or a look at the first costs O(log events), all
// else O(1) or O(log members).
class ReadyEvents {
 public:
  // failed_by must not change in between.
  void Add(UnsettledEvent* event);
  void Remove(UnsettledEvent* event);

  size_t size() const { return unfailed_.size() + failed_size_; }
  // Events that no member failed.
  size_t unfailed() const { return unfailed_.size(); }
  // Events that any member failed last, or this one.
  size_t failed() const { return failed_size_; }
  size_t failed_by(MemberId member) const;
  // The member that failed all of failed(); 0 if there are several, or none.
  MemberId only_failed_by() const {
    return failed_.size() == 1 ? failed_.begin()->first : 0;
  }

  // The event with the lowest number, of those that no member failed; null if
  // there is none.
  UnsettledEvent* FirstUnfailed() const { return FirstOf(unfailed_); }
  // Of all but those that `member` failed, if it is not 0.
  UnsettledEvent* FirstNotFailedBy(MemberId member) const;

 private:
  using Events = absl::btree_map<uint64_t, UnsettledEvent*>;

  static UnsettledEvent* FirstOf(const Events& events) {
    return events.empty() ? nullptr : events.begin()->second;
  }

  Events unfailed_;
  // By failed_by; none is empty.
  absl::btree_map<MemberId, Events> failed_;
  size_t failed_size_ = 0;
  // The lowest number of each, and whose it is.
  absl::btree_set<std::pair<uint64_t, MemberId>> firsts_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_READY_H_

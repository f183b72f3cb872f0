// The events of a consumer group that wait to be delivered.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_READY_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_READY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"

namespace timecache::server {

struct UnsettledEvent;

// A stream's part in a group has a number, from 1 on; 0 is none.
using MemberId = uint64_t;

// What has become of an event's deliveries so far: it decides which members may
// get the event.
struct Failures {
  // Streams end again and again while a member holds it.
  bool suspect = false;
  // The member that NACKed it last; 0: none did since it timed out.
  MemberId rejected_by = 0;
  // The members that let it time out, in that order, and may still be busy with
  // it.
  std::vector<MemberId> late;

  bool none() const { return !suspect && rejected_by == 0 && late.empty(); }
  bool operator<(const Failures& other) const;
};

// Events in the order of their numbers, apart by their failures.
//
// Not thread-safe. A change or a look at the first costs O(log events); what
// asks `may`, O(different failures).
class ReadyEvents {
 public:
  using May = absl::FunctionRef<bool(const Failures& failures)>;

  // The event's failures must not change in between.
  void Add(UnsettledEvent* event);
  void Remove(UnsettledEvent* event);

  size_t size() const { return unfailed() + failed_size_; }
  // Events that have not failed.
  size_t unfailed() const {
    return first_ == nullptr ? 0 : 1 + unfailed_.size();
  }
  // Events that have, suspects apart.
  size_t failed() const { return failed_size_ - suspects_; }
  size_t suspects() const { return suspects_; }

  // Failed events whose failures pass `may`.
  struct Count {
    uint64_t failed = 0;
    uint64_t suspects = 0;
  };
  Count CountFailed(May may) const;
  bool HasFailed(May may) const;
  // The event with the lowest number, of those that have not failed and those
  // whose failures pass `may`; null if there is none.
  UnsettledEvent* First(May may) const;

 private:
  using Events = absl::btree_map<uint64_t, UnsettledEvent*>;
  // None is empty. Nodes do not move.
  using Failed = std::map<Failures, Events>;

  void AddUnfailed(UnsettledEvent* event);
  void RemoveUnfailed(UnsettledEvent* event);

  // Of those that have not failed: the first, and the others. A fresh event that
  // is delivered at once is the only one, and needs no node.
  UnsettledEvent* first_ = nullptr;
  Events unfailed_;
  Failed failed_;
  size_t failed_size_ = 0;
  size_t suspects_ = 0;
  // The lowest number of each.
  absl::btree_map<uint64_t, const Failed::value_type*> firsts_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_READY_H_

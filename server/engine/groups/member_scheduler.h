// Decides which members of a consumer group get events, and how many each may
// hold.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_MEMBER_SCHEDULER_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_MEMBER_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <list>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "server/base/clock.h"
#include "server/engine/groups/group_member.h"
#include "server/engine/groups/group_ready.h"

namespace timecache::server {

// Wakes as many members as there are events, the longest idle first, and
// assigns each member that calls Take a fair share.
//
// A member is awake from its waking until it has taken all it may; then idle,
// full if it may take no more, or stuck if it did not call after it was woken:
// its stream may not be read. A member that is leaving is gone. Awake members
// take events in rounds, each at least once a round if it calls.
//
// A member's window is the number of events that it may hold. It starts as
// max_in_flight. Each event that times out sets it to half of the events held
// or of the window, whichever is less, and at least 1; with each settlement it
// grows by 1, up to max_in_flight. A member is unresponsive from a time-out
// until it settles.
//
// A failed event is never delivered to a member that let it time out and has
// not answered since. Of the others, it is not delivered to the one that NACKed
// it while there is another that is not stuck, nor to unresponsive ones while
// there is one that is neither. Without any it waits until a member joins or
// answers.
//
// With `single_active` the oldest stream alone gets events. When it ends, the
// next one does, once all its events are returned.
//
// Not thread-safe. O(1) a member that is woken; where only failed events wait,
// O(members that may not get them), too.
class MemberScheduler {
 public:
  using Turn = GroupMember::Turn;

  // How long a woken member may stay silent before others are woken.
  static constexpr int64_t kPatienceUs = 10'000;

  // A new member is awake: it calls Take by itself.
  void Join(GroupMember* member);
  void Leave(GroupMember* member);
  // Fetches that wait included.
  size_t members() const { return by_id_.size(); }
  // In the order in which they joined.
  using Streams = absl::btree_map<MemberId, GroupMember*>;
  const Streams& streams() const { return streams_; }
  size_t unresponsive() const { return members() - responsive_; }

  void SetSingleActive(bool single_active);
  // Whether the member gets events, as far as it depends on single_active.
  bool IsActive(const GroupMember* member) const {
    return !single_active_ || member == Active();
  }
  // The events of a member that left are being returned.
  void BeginReturn() { ++returning_; }
  void EndReturn() { --returning_; }

  // `member` calls Take: its share of `available` events, at least 1 if there
  // is one.
  uint64_t BeginTake(GroupMember* member, uint64_t available);
  // It has taken its share: it waits until it is woken.
  void EndTake(GroupMember* member);
  // It holds fewer events, or its window has changed.
  void OnRoom(GroupMember* member);

  // An event that it holds timed out.
  void OnTimeOut(GroupMember* member);
  // It settled an event; no change if it is gone.
  void OnSettled(MemberId member);

  // Whether `member`, which is not stuck, may get events that failed so. O(late
  // members).
  bool MayRetry(const GroupMember* member, const Failures& failures) const;
  bool IsMember(MemberId id) const { return by_id_.contains(id); }

  // The events to be delivered.
  struct Supply {
    // For any member.
    uint64_t unfailed = 0;
    // For some members.
    uint64_t failed = 0;
    // With these; null if there are none. Not owned.
    const ReadyEvents* ready = nullptr;
  };
  using MayGet = absl::FunctionRef<bool(const GroupMember* member,
                                        const Failures& failures)>;
  // At `now_us`: wakes the members that are to take them; `may` says which
  // failed events a member may get.
  void Wake(const Supply& supply, MayGet may, int64_t now_us);
  // Wakes a full member, if no member is awake: to deliver information other
  // than events.
  void WakeFull();
  // Wakes streams that wait, and have not seen that all events before `event`
  // are delivered. Returns how many. O(streams).
  size_t WakeForAllDelivered(uint64_t event);
  // When to call Wake in any case.
  int64_t due_us() const { return due_us_; }
  // Wakes all that are not awake: for the last time.
  void WakeAll();

 private:
  using Members = std::list<GroupMember*>;

  Members& ListOf(const GroupMember* member);
  bool Served(const GroupMember* member) const {
    return member->served_round_ == round_;
  }
  void Move(GroupMember* member, Turn turn);
  void SetResponsive(GroupMember* member, bool responsive);
  void Count(const GroupMember* member, int change);
  void WakeOne(GroupMember* member);
  GroupMember* Active() const {
    return returning_ > 0 || streams_.empty() ? nullptr
                                              : streams_.begin()->second;
  }
  void WakeActive(const Supply& supply, MayGet may);
  GroupMember* NextToWake(const Supply& supply, MayGet may);
  GroupMember* NextForFailed(const Supply& supply, MayGet may);
  // Awake members that may get some of the failed events, as a rule.
  size_t AwakeRetriers() const {
    return present_responsive_ > 0 ? awake_responsive_ : awake_.size();
  }

  absl::flat_hash_map<MemberId, GroupMember*> by_id_;
  MemberId last_id_ = 0;
  Streams streams_;
  // The other members.
  absl::flat_hash_set<GroupMember*> fetches_;
  bool single_active_ = false;
  int returning_ = 0;

  Members awake_;
  // The front has been idle longest.
  Members idle_;
  Members idle_unresponsive_;
  // Full or stuck.
  Members away_;
  // Orders the idle.
  uint64_t last_idle_ = 0;
  // Members that are responsive; of these and of all, those that are awake,
  // idle or full; of these again, those that are awake.
  size_t responsive_ = 0;
  size_t present_responsive_ = 0;
  size_t present_ = 0;
  size_t awake_responsive_ = 0;

  uint64_t round_ = 1;
  // Awake members that have not called in this round.
  uint64_t unserved_ = 0;
  int64_t due_us_ = kNeverUs;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_MEMBER_SCHEDULER_H_

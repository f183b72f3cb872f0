// Whose turn it is in a consumer group, and how much a member may hold.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_MEMBER_SCHEDULER_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_MEMBER_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <list>

#include "absl/container/flat_hash_map.h"
#include "server/engine/clock.h"
#include "server/engine/groups/group_member.h"
#include "server/engine/groups/group_ready.h"

namespace timecache::server {

// Wakes as many members as there are events, those first that have been idle
// longest, and gives each that comes a fair share.
//
// A member is awake from its waking until it has taken all it may; then idle,
// full if it may take no more, or stuck if it did not come when it was woken:
// its stream may not be read. One that is leaving is gone. The awake take in
// rounds, each at least once a round if it comes.
//
// What a member may hold is its window. It begins as max_in_flight. With each
// event that times out it becomes half of what the member held or could have,
// whichever is less, and at least 1; with each settlement it grows by 1, up to
// max_in_flight. A member is unresponsive from a time-out until it settles.
//
// An event that failed, because it timed out or was NACKed, is not for the
// member that failed it while there is another that is not stuck, and not for
// those that are unresponsive while there is one that is neither.
//
// Not thread-safe. O(1) a member that is woken.
class MemberScheduler {
 public:
  using Turn = GroupMember::Turn;

  // So long events wait for members that were woken and do not come, before the
  // others are woken.
  static constexpr int64_t kPatienceUs = 10'000;

  // A new member is awake: it comes by itself.
  void Join(GroupMember* member);
  void Leave(GroupMember* member);
  size_t members() const { return by_id_.size(); }
  size_t unresponsive() const { return members() - responsive_; }

  // `member` comes. How many of `available` events are its share: at least 1 if
  // there is one.
  uint64_t Come(GroupMember* member, uint64_t available);
  // It has taken all that it is to have now: it waits until it is woken.
  void Rest(GroupMember* member);
  // What it holds has become less, or its window another.
  void OnRoom(GroupMember* member);

  // An event that it holds timed out.
  void OnTimeOut(GroupMember* member);
  // It settled an event; none if it is gone.
  void OnSettled(MemberId member);

  // Whether `member`, which is not stuck, may be given what failed, unless it
  // failed it itself; or also then.
  bool MayRetry(const GroupMember* member) const {
    return member->responsive_ || !ForResponsive();
  }
  bool MayRetryOwn(const GroupMember* member) const {
    return MayRetry(member) && retriers() == 1;
  }

  // What there is to be given out.
  struct Supply {
    // For any member.
    uint64_t unfailed = 0;
    // For those that MayRetry, or MayRetryOwn.
    uint64_t failed = 0;
    // The member that failed all of these; 0 if there are several.
    MemberId only_failed_by = 0;
  };
  // At `now_us`: wakes those that are to come for it.
  void Wake(const Supply& supply, int64_t now_us);
  // Wakes one that is full, if no member is awake: for what is no event.
  void WakeFull();
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
  GroupMember* NextToWake(const Supply& supply);
  // What failed is for the responsive, if there is one that is not stuck; else
  // for all that are not.
  bool ForResponsive() const { return present_responsive_ > 0; }
  size_t retriers() const {
    return ForResponsive() ? present_responsive_ : present_;
  }
  size_t AwakeRetriers(MemberId but) const;

  absl::flat_hash_map<MemberId, GroupMember*> by_id_;
  MemberId last_id_ = 0;

  Members awake_;
  // The front has been idle longest.
  Members idle_;
  Members idle_unresponsive_;
  // Full or stuck.
  Members away_;
  // Orders the idle.
  uint64_t rests_ = 0;
  // Members that are responsive; of these and of all, those that are awake,
  // idle or full; of these again, those that are awake.
  size_t responsive_ = 0;
  size_t present_responsive_ = 0;
  size_t present_ = 0;
  size_t awake_responsive_ = 0;

  uint64_t round_ = 1;
  // Awake members that have not come in this round.
  uint64_t unserved_ = 0;
  int64_t due_us_ = kNeverUs;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_MEMBER_SCHEDULER_H_

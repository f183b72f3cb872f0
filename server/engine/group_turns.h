// Whose turn it is in a consumer group.

#ifndef TIMECACHED_SERVER_ENGINE_GROUP_TURNS_H_
#define TIMECACHED_SERVER_ENGINE_GROUP_TURNS_H_

#include <cstddef>
#include <cstdint>
#include <list>

#include "server/engine/clock.h"
#include "server/engine/group_member.h"

namespace timecache {

// Wakes as many members as there are events, those first that have been idle
// longest, and gives each that comes a fair share.
//
// A member is awake from its waking until it has taken all it may; then idle,
// or away if it may take no more, or if it did not come when it was woken: its
// stream may be stuck. One that is leaving is gone. The awake take in rounds,
// each at least once a round if it comes.
//
// Not thread-safe. O(1) a member that is woken.
class GroupTurns {
 public:
  using Turn = GroupMember::Turn;

  // So long events wait for members that were woken and do not come, before the
  // others are woken.
  static constexpr int64_t kPatienceUs = 10'000;

  // A new member is awake: it comes by itself.
  void Join(GroupMember* member);
  void Leave(GroupMember* member);
  size_t members() const { return awake_.size() + idle_.size() + away_.size(); }

  // `member` comes. How many of `available` events are its share: at least 1 if
  // there is one.
  uint64_t Come(GroupMember* member, uint64_t available);
  // It has taken all that there is, and waits to be woken.
  void Rest(GroupMember* member) { Move(member, Turn::kIdle); }
  // It may take no more, until Rest.
  void GoAway(GroupMember* member) { Move(member, Turn::kAway); }

  // There are `available` events at `now_us`: wakes those that are to come.
  void Wake(uint64_t available, int64_t now_us);
  // When to call Wake in any case.
  int64_t due_us() const { return due_us_; }
  // Wakes all that are not awake: for the last time.
  void WakeAll();

 private:
  using Members = std::list<GroupMember*>;

  Members& ListOf(Turn turn);
  bool Served(const GroupMember* member) const {
    return member->served_round_ == round_;
  }
  void Move(GroupMember* member, Turn turn);
  void WakeOne(GroupMember* member);

  Members awake_;
  // The front has been idle longest.
  Members idle_;
  Members away_;
  uint64_t round_ = 1;
  // Awake members that have not come in this round.
  uint64_t unserved_ = 0;
  int64_t due_us_ = kNeverUs;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_ENGINE_GROUP_TURNS_H_

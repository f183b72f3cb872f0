// A stream's membership in a consumer group.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_MEMBER_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_MEMBER_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "server/engine/groups/group_events.h"
#include "server/engine/groups/group_ready.h"
#include "server/engine/store/group_types.h"
#include "server/engine/store/in_flight_limit.h"

namespace timecache::server {

class ConsumerGroup;

// How a member takes part.
struct JoinAs {
  MemberOrigin origin = {};
  // Takes events for a caller without a stream, which stay with the caller once
  // the answer was sent.
  bool fetches = false;
  // Woken also for EventChunk::all_delivered.
  bool wants_all_delivered = false;
  // As Membership's.
  std::shared_ptr<InFlightLimit> in_flight = nullptr;
  MemberId id = 0;
};

// A stream that takes part, or a fetch: ConsumerGroup::Join makes it. Used by one thread at
// a time; may outlive the group's deletion, not the group. Its destruction
// returns its events to the other members at once, if Leave has not: as one
// that the server ends. Not to be destroyed from its own `wake`.
class GroupMember {
 public:
  ~GroupMember();
  GroupMember(const GroupMember&) = delete;
  GroupMember& operator=(const GroupMember&) = delete;

  // At most `max_events`, about `max_bytes` as they are encoded, and as many as
  // the group delivers under one lock; at least one if there is one for this
  // member and it holds less than its window, which is max_in_flight unless it
  // let events time out (see MemberScheduler). Waiting events are distributed
  // fairly among the members that could take them. Without `at_least_one` none
  // that does not fit.
  EventChunk Take(int64_t now_us, int max_events, int64_t max_bytes,
                  bool at_least_one = true);
  // Of a fetch: it takes no more. Leave follows.
  void StopTaking();
  // Its stream has ended so: its events are returned, but for those of a fetch
  // that was answered. No further calls.
  void Leave(int64_t now_us, StreamEnd end);

 private:
  friend class ConsumerGroup;
  friend class GroupLedger;
  friend class MemberScheduler;

  GroupMember(ConsumerGroup* group, int max_in_flight,
              std::function<void()> wake, JoinAs as)
      : group_(group),
        max_in_flight_(max_in_flight),
        wake_(std::move(wake)),
        fetches_(as.fetches),
        wants_all_delivered_(as.wants_all_delivered),
        origin_(as.fetches ? nullptr
                           : std::make_shared<const MemberOrigin>(
                                 std::move(as.origin))),
        held_(std::move(as.in_flight)),
        id_(as.id) {}

  // Null once it has left.
  ConsumerGroup* group_;
  const int max_in_flight_;
  const std::function<void()> wake_;
  const bool fetches_;
  const bool wants_all_delivered_;
  // Null of a fetch.
  const std::shared_ptr<const MemberOrigin> origin_;

  // A delivery that a fetch took.
  struct Fetched {
    uint64_t event_id;
    int attempt;
    int returns;
  };

  int room() const { return std::min(window_ - held_.size(), held_.room()); }
  bool HasRoom() const { return room() > 0; }
  // As far as it depends on this member alone.
  bool HasWindow() const { return held_.size() < window_; }

  // Guarded by the group's lock.
  HeldEvents held_;
  // Of these, suspects.
  int suspects_ = 0;
  // See MemberScheduler. Before it joins: the id that it asks for, or 0.
  MemberId id_;
  int window_ = max_in_flight_;
  bool responsive_ = true;
  enum class Turn { kAwake, kIdle, kFull, kStuck, kGone };
  Turn turn_ = Turn::kGone;
  std::list<GroupMember*>::iterator position_;
  uint64_t idle_number_ = 0;
  uint64_t served_round_ = 0;
  // The number of the event before which all were delivered, when it last found
  // that all are.
  uint64_t seen_event_ = 0;
  // What a fetch has taken: see ConsumerGroup::EndFetch.
  std::vector<Fetched> fetched_;
  uint64_t fetched_lost_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_MEMBER_H_

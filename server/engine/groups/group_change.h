// Changes of a map's consumer groups: with the map's events, enough to rebuild
// the groups in another process, without a clock.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_CHANGE_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_CHANGE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "server/base/clock.h"
#include "server/engine/store/event_batch.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// What GroupChange::kCounts has: counts that kExists does not contain, or that
// changes alone do not add up to.
using GroupCount = uint64_t GroupStatistics::*;
inline constexpr GroupCount kLaterGroupCounts[] = {
    &GroupStatistics::returned,    &GroupStatistics::extended,
    &GroupStatistics::redelivered, &GroupStatistics::terminated,
    &GroupStatistics::moved,       &GroupStatistics::skipped,
};

// The options of kLaterOptions, of both.
template <typename From, typename To, typename Visit>
void ForEachLaterOption(From&& from, To* to, const Visit& visit) {
  visit(from.retry_delay_us, &to->retry_delay_us);
  visit(from.retry_multiplier, &to->retry_multiplier);
  visit(from.max_retry_delay_us, &to->max_retry_delay_us);
  visit(from.retry_jitter_percent, &to->retry_jitter_percent);
  visit(from.paused, &to->paused);
  visit(from.single_active, &to->single_active);
}

// A change of one group. Records the new state, not the request. An existing
// group follows the log of its map: an event of the log belongs to the group
// until a change records its outcome.
//
// Deliveries are not recorded, but how they end: an event that a member held
// when the process ended is ready again, with the previous number of attempts
// and returns.
struct GroupChange {
  enum class Kind : uint8_t {
    // The group is there, with `options`, `created_by`, `unused_since_us`,
    // `statistics` and `unreported`: it began with event `first`, and takes
    // those from `end` on from the log. For a group that is known to exist it
    // changes nothing.
    kExists = 1,
    // It has `options`.
    kOptions = 2,
    // It is gone.
    kDeleted = 3,
    // It is deleted, and its name is remembered: a new group of that name
    // begins with the event `end`, and with `unreported` lost events.
    kExpired = 4,
    // It has had no member since `unused_since_us`.
    kUnused = 5,
    // All events that it lost have been reported to members.
    kLossReported = 6,
    // It keeps the event `first`, which is `event` and died as `death` says,
    // has had `attempt` attempts that counted and is ready at `ready_us`.
    kKept = 7,

    // The outcome of the events from `first` to before `end`.

    // Settled, and with it ended attempt `attempt`; 0: none was going on.
    kAcked = 8,
    kPutBack = 9,
    kDeadLettered = 10,
    // Attempt `attempt` ended: ready for another one at `ready_us`, or, if the
    // member's stream ended (kReturned), for the same one.
    kNacked = 11,
    kTimedOut = 12,
    kReturned = 13,
    // Lost, and with it ended attempt `attempt`; 0: none was going on. Dropped
    // for the limits' sake, or because their dead letters never fit.
    kDropped = 14,
    kLetterDropped = 15,

    // What kKept does not contain of the events from `first` to before `end`:
    // each has been returned `returns` times, and `returned` since the last
    // attempt that counted, which ended by `reason`; it is ready at `ready_us`.
    kPast = 16,
    // The group has the kLaterGroupCounts of `statistics`. Follows all kKept:
    // of a delivery that ends between kExists and the kKept of its event, the
    // change does not say whether it was the first.
    kCounts = 17,
    // It has the identity `id`. Follows kExists; without it the identity is 0.
    kIdentity = 18,
    // It has these of `options`, too, that kExists and kOptions do not contain.
    // Follows them; without it they have their defaults.
    kLaterOptions = 19,
    // As kNacked, by a TERMINATE: the event is to become a dead letter.
    kGivenUp = 20,
    // Settled by a TERMINATE.
    kTerminated = 21,
    // The last attempt at the events from `first` to before `end` that counted
    // ended with `reason_text`. Follows what says how it ended.
    kReason = 22,
    // It was moved: events of the log from `end` on are unsettled, with no
    // attempt yet. So are those from `first` on that it still has; `unreported`
    // others were lost. Events before `first` stay, or, if `attempt` is 1, are
    // dropped. The next event that it takes from the log is `id`. `statistics`
    // has how many were dropped, and the deliveries that were in flight.
    kSeek = 23,
    // It has the retry_delays_us of `options`. Follows kExists and kOptions;
    // without it there are none.
    kRetryDelays = 24,
    // The group that the next kExists of this name describes has the key_prefix
    // of `options`.
    kKeyPrefix = 25,
  };
  static constexpr Kind kLastKind = Kind::kKeyPrefix;

  // Whether it is about events that the log has had.
  bool names_events() const {
    return kind >= Kind::kKept && first < end && kind != Kind::kSeek;
  }
  // Whether it records the outcome of events.
  bool settles() const {
    return (kind >= Kind::kAcked && kind <= Kind::kDeadLettered) ||
           kind == Kind::kTerminated;
  }
  bool fails() const {
    return (kind >= Kind::kNacked && kind <= Kind::kReturned) ||
           kind == Kind::kGivenUp;
  }
  bool drops() const {
    return kind == Kind::kDropped || kind == Kind::kLetterDropped;
  }

  Kind kind = Kind::kExists;
  // The group's.
  absl::string_view name = {};
  // Of kIdentity and kSeek.
  uint64_t id = 0;
  // Numbers of events.
  uint64_t first = 0;
  uint64_t end = 0;
  int attempt = 0;
  int64_t ready_us = 0;
  // Of kPast.
  int returns = 0;
  bool returned = false;
  FailureReason reason = FailureReason::kUnknown;
  // Of kReason.
  absl::string_view reason_text = {};

  // Of kExists, kOptions and those that follow them.
  GroupOptions options = {};
  // Of kExists.
  absl::string_view created_by = {};
  // Of kExists, kCounts and kSeek. Its counts; deliveries in flight are not in
  // them.
  GroupStatistics statistics = {};
  // Of kExists and kUnused; kNeverUs: it has a member.
  int64_t unused_since_us = kNeverUs;
  // Of kSeek. Of kExists and kExpired: lost events that have not been reported to
  // a member.
  uint64_t unreported = 0;
  // Of kKept.
  ExpiredEvent event = {};
  Death death = {};
};

// As ChangeSink, of the groups. A change is valid once all earlier changes of
// the map are known: an event that is put back is an entry before it is settled.
class GroupChangeSink {
 public:
  // Of one group: in order, one after the other.
  virtual void AddGroup(const GroupChange& change) = 0;

 protected:
  ~GroupChangeSink() = default;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_CHANGE_H_

// Consumer groups as the client describes them: plain structs. Ranges and
// defaults are those of proto/timecache/v1/groups.proto.

#ifndef TIMECACHE_GROUP_TYPES_H_
#define TIMECACHE_GROUP_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace timecache {

// How a consumer group behaves. Unset: the default when a group is created, no
// change when it is updated; in a response all are set.
struct GroupOptions {
  // How long a member has to settle an event before the event is delivered to
  // another. 10 ms to 7 days. Default 30 s.
  std::optional<absl::Duration> ack_timeout = {};
  // Attempts at an event before it goes to the namespace's
  // dead_letter_namespace, if there is one. 1 to 1,000,000. Default 5.
  std::optional<uint32_t> max_attempts = {};
  // Memory for unsettled events; beyond it the oldest that no member holds are
  // dropped and counted as lost. Members hold at most half of it at a time. 1
  // MiB to 64 GiB. Default 256 MiB.
  std::optional<uint64_t> max_backlog_bytes = {};
  // How long the group may be without a member before it is deleted; zero: it
  // stays. Zero, or 1 s to 10 years. Default zero; for a group that is created
  // by its first member, the namespace's unused_group_ttl.
  std::optional<absl::Duration> unused_ttl = {};
  // How long an event waits after its first attempt that counted, if the kNack
  // names no delay, or it was not settled in time; after each further attempt
  // retry_multiplier times as long, up to max_retry_delay; each delay is shortened
  // at random by up to retry_jitter_percent. 0 to 7 days, 1 to 100, 0 to 7 days, 0
  // to 100. Defaults: 0, 2, 7 days, 0.
  std::optional<absl::Duration> retry_delay = {};
  std::optional<uint32_t> retry_multiplier = {};
  std::optional<absl::Duration> max_retry_delay = {};
  std::optional<uint32_t> retry_jitter_percent = {};
  // No event is delivered until this is false again. Default false.
  std::optional<bool> paused = {};
  // Only events whose keys begin with this are the group's. At most 256 B. Fixed
  // when the group is created. Default empty: all.
  std::optional<std::string> key_prefix = {};
  // One member gets all events, the oldest; when its stream ends, the next one.
  // Client::FetchExpired is refused. Default false.
  std::optional<bool> single_active = {};
  // The waits after the first, the second, ... attempt, in place of retry_delay,
  // retry_multiplier and max_retry_delay; after the last one the last holds. At
  // most 32, each 0 to 7 days. Default none.
  std::optional<std::vector<absl::Duration>> retry_delays = {};
};

// What a consumer group holds and has done since it was created.
struct GroupStatistics {
  uint64_t members = 0;  // Streams.
  // Of these, members that let an event time out and have settled none since.
  uint64_t unresponsive_members = 0;
  uint64_t backlog = 0;        // Unsettled events that no member holds.
  uint64_t backlog_bytes = 0;  // Memory of all unsettled events.
  uint64_t in_flight = 0;      // Events that members hold.
  uint64_t fetched = 0;        // Of these, events that FetchExpired handed out.
  // When the oldest unsettled event died, on the server's clock. Unset: all
  // events are settled.
  std::optional<absl::Time> oldest_unsettled = {};
  uint64_t delivered = 0;    // Deliveries to a member.
  uint64_t redelivered = 0;  // Of these, second and later attempts.
  uint64_t acked = 0;        // Events settled by kAck.
  uint64_t nacked = 0;       // kNacks.
  uint64_t put_back = 0;     // Events settled by kPutBack, put or dropped.
  // Events settled by kTerminate, as the namespace has no place for dead letters.
  uint64_t terminated = 0;
  uint64_t timed_out = 0;      // Times that a member did not settle in time.
  uint64_t dead_lettered = 0;  // Events that went to the dead letters.
  uint64_t dead_letter_failures = 0;  // Failed attempts to do so.
  uint64_t lost = 0;                  // Events that were dropped unsettled.
  // Of these, those whose dead letter was too large to be put.
  uint64_t dead_letters_dropped = 0;
  uint64_t in_flight_bytes = 0;  // Memory of events that members hold.
  // Of dead_letter_failures, those because the principal that created the group
  // may not write there.
  uint64_t dead_letters_denied = 0;
  // Since when the group has had no member. Unset: it has one.
  std::optional<absl::Time> unused_since = {};
  // Deliveries that ended with the member's stream, which are no attempts.
  uint64_t returned = 0;
  uint64_t extended = 0;  // kExtends.
  // Unsettled events that were returned three times or more since their last
  // attempt: the workers that get them may die of them. Such an event waits
  // before it is delivered again, up to 5 min.
  uint64_t suspects = 0;
};

struct Group {
  std::string name;
  std::string ns;  // The namespace whose events it distributes.
  GroupOptions options;
  std::optional<GroupStatistics> statistics = {};  // If asked for.
  std::string created_by;  // The principal that created it.
};

// A stream that is a member of a group.
struct GroupMember {
  uint64_t id = 0;        // In its group, as long as the server runs.
  std::string principal;  // "anonymous" without access rules.
  std::string peer;       // "ipv4:10.0.0.7:41234"
  absl::Time since;
  uint64_t in_flight = 0;  // Events that it holds.
  uint64_t max_in_flight = 0;
  uint64_t window = 0;  // How many it may hold now.
  // It let an event time out and has settled none since.
  bool unresponsive = false;
  // Whether it is the one that gets events, in a group that is single_active.
  bool active = true;
};

}  // namespace timecache

#endif  // TIMECACHE_GROUP_TYPES_H_

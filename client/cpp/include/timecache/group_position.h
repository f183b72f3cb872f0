// Where a consumer group starts or goes on, and what it has not settled: plain
// structs.

#ifndef TIMECACHE_GROUP_POSITION_H_
#define TIMECACHE_GROUP_POSITION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "timecache/watch_types.h"

namespace timecache {

// A position in the log of a namespace. As it is made: with the entries that die
// from now on.
struct GroupPosition {
  GroupPosition() = default;
  GroupPosition(WatchStart from) : start(from) {}  // NOLINT: a start is one

  // With the first retained event that died after this moment.
  static GroupPosition After(absl::Time moment) {
    GroupPosition position;
    position.time = moment;
    return position;
  }
  // With the event after a batch of a watch: its WatchBatch::resume_token.
  static GroupPosition At(std::string token) {
    GroupPosition position;
    position.resume_token = std::move(token);
    return position;
  }

  WatchStart start = WatchStart::kNow;
  // At most one of these is set; then `start` has no meaning.
  std::optional<absl::Time> time = {};
  std::optional<std::string> resume_token = {};
};

struct SeekOptions {
  // Drop the events before the position that are not settled; else the group
  // keeps them.
  bool drop_unsettled = false;
};

struct SeekResult {
  uint64_t unsettled = 0;  // Events that the group is to deliver now.
  uint64_t dropped = 0;    // Events that drop_unsettled dropped.
};

// What an unsettled event waits for.
enum class UnsettledState {
  kUnknown,  // The server is newer than this client.
  kReady,
  kBlockedByKey,  // An earlier event of its key is not settled.
  kInFlight,
  kDelayed,
  kDeadLettering,
};

// An event that a group has not settled, as it was when it was listed.
struct UnsettledEvent {
  // Its delivery_token settles the event whoever holds it. Its `attempt` is 0
  // if it has not been delivered.
  ExpiredEvent event;
  UnsettledState state = UnsettledState::kUnknown;
  // In flight: the member that holds it, 0 for a fetch, and since when.
  uint64_t member_id = 0;
  std::optional<absl::Time> since = {};
  // When it times out, may be delivered, or the dead letter is tried next.
  std::optional<absl::Time> due = {};
};

struct ListUnsettledOptions {
  std::string key_prefix = {};  // Empty: all keys.
  // Values, but for those above 1 MiB, and parts.
  bool include_values = false;
};

}  // namespace timecache

#endif  // TIMECACHE_GROUP_POSITION_H_

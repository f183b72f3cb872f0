// What a consumer group is made of when it is made again.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_STATE_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_STATE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/engine/clock.h"
#include "server/engine/groups/group_types.h"
#include "server/engine/groups/kept_events.h"

namespace timecache::server {

// What is said of an event that was delivered and not settled.
struct FailedAttempts {
  int attempts = 0;
  // When it may be delivered again.
  int64_t ready_us = 0;
};

struct GroupState {
  std::string name;
  std::string created_by;
  GroupOptions options;
  // Since when it has no member; kNeverUs: it had one.
  int64_t unused_since_us = kNeverUs;
  // The number of the event with which it began, and of the one that comes
  // next.
  uint64_t first_event = 0;
  uint64_t next_event = 0;
  // Its counts, without deliveries in flight.
  GroupStatistics counts;
  // Events that it lost, of which no member has been told.
  uint64_t unreported = 0;
  // All that is not settled, in order.
  std::vector<KeptBatch> kept;
  // By number, of those.
  std::map<uint64_t, FailedAttempts> failed;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_STATE_H_

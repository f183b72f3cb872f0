// The state from which a consumer group is rebuilt.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_STATE_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/base/clock.h"
#include "server/engine/groups/kept_events.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// What is known of an unsettled event whose delivery has ended.
struct PastDeliveries {
  // That counted.
  int attempts = 0;
  // That ended with the member's stream: how many, and whether there is one
  // since the last that counted.
  int returns = 0;
  bool returned = false;
  // How the last that counted ended.
  FailureReason reason = FailureReason::kUnknown;
  std::shared_ptr<const std::string> reason_text;
  // When it may be delivered again.
  int64_t ready_us = 0;
};

struct GroupState {
  std::string name;
  std::string created_by;
  uint64_t id = 0;
  GroupOptions options;
  // Since when it has no member; kNeverUs: it had one.
  int64_t unused_since_us = kNeverUs;
  // The number of the event with which it began, and of the one that comes
  // next.
  uint64_t first_event = 0;
  uint64_t next_event = 0;
  // Its counts, without deliveries in flight.
  GroupStatistics counts;
  // Lost events that have not been reported to a member.
  uint64_t unreported = 0;
  // All unsettled events, in order.
  std::vector<KeptBatch> kept;
  // By number, of those that were delivered.
  std::map<uint64_t, PastDeliveries> delivered;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_STATE_H_

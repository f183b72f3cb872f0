// What the log and the metrics say of a cluster's ownership.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_EVENTS_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_EVENTS_H_

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "server/cluster/member_options.h"
#include "server/cluster/membership_status.h"
#include "server/ops/log.h"

namespace timecache::server {

// Of this process, since it started. Thread-safe functions.
struct ClusterEvents {
  // That were finished.
  uint64_t takeovers = 0;
  uint64_t leases_late = 0;
  uint64_t fenced = 0;
};
ClusterEvents GetClusterEvents();

void CountTakeover();

// Logs an event of a slot; kWholeNode: the log names none.
void LogOfSlot(int slot, LogLevel level, std::string_view event,
               std::initializer_list<LogField> fields);

// Logs it so, and counts it.
void LogMemberEvent(int slot, const MemberEvent& event);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_EVENTS_H_

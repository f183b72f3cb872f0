#include "server/main/cluster_events.h"

#include <atomic>
#include <vector>

#include "absl/time/time.h"

namespace timecache::server {
namespace {

struct Counts {
  std::atomic<uint64_t> takeovers{0};
  std::atomic<uint64_t> leases_late{0};
  std::atomic<uint64_t> fenced{0};
};
Counts counts;

}  // namespace

ClusterEvents GetClusterEvents() {
  return {counts.takeovers, counts.leases_late, counts.fenced};
}

void CountTakeover() { ++counts.takeovers; }

void LogOfSlot(int slot, LogLevel level, std::string_view event,
               std::initializer_list<LogField> fields) {
  std::vector<LogField> all(fields);
  if (slot != kWholeNode) all.push_back({"slot", slot});
  Log(level, event, all);
}

void LogMemberEvent(int slot, const MemberEvent& event) {
  const auto log = [slot](LogLevel level, std::string_view name,
                          std::initializer_list<LogField> fields) {
    LogOfSlot(slot, level, name, fields);
  };
  using Kind = MemberEvent::Kind;
  const int64_t took_ms = absl::ToInt64Milliseconds(event.duration);
  switch (event.kind) {
    case Kind::kTakeover:
      return log(LogLevel::kInfo, "ownership_taken",
                 {{"by", event.node},
                  {"from", event.former},
                  {"released", event.released},
                  {"silent_ms", took_ms}});
    case Kind::kRelease:
      return log(LogLevel::kInfo, "ownership_released",
                 {{"by", event.node}, {"to", event.successor}});
    case Kind::kFenced:
      ++counts.fenced;
      return log(LogLevel::kWarning, "node_fenced", {{"by", event.node}});
    case Kind::kTakeoverRefused:
      return log(LogLevel::kInfo, "takeover_refused",
                 {{"why", "another node was first"}});
    case Kind::kClockSkewed:
      return log(LogLevel::kWarning, "clock_skewed",
                 {{"ahead_of_brokers_ms", took_ms},
                  {"message",
                   "this node does not take over until its clock, or the "
                   "brokers', is right"}});
    case Kind::kClockRight:
      return log(LogLevel::kInfo, "clock_no_longer_skewed",
                 {{"ahead_of_brokers_ms", took_ms}});
    case Kind::kLeaseLate:
      ++counts.leases_late;
      return log(LogLevel::kWarning, "lease_late",
                 {{"message",
                   "no heartbeat came back from the control log in time: calls "
                   "are refused until one does"}});
    case Kind::kLeaseRenewed:
      return log(LogLevel::kInfo, "lease_renewed", {{"after_ms", took_ms}});
    case Kind::kLogLost:
      return log(LogLevel::kError, "control_log_lost", {{"why", event.reason}});
  }
}

}  // namespace timecache::server

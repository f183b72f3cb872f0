// A consumer group and a storm: until its members have settled all of it.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "bench/service/group_members.h"
#include "bench/service/server_usage.h"
#include "bench/service/service_servers.h"
#include "bench/watch/watch_runs.h"
#include "bench/watch/watch_storm.h"
#include "grpcpp/grpcpp.h"
#include "timecache/v1/groups.grpc.pb.h"

namespace timecache::bench {
namespace {

constexpr char kGroup[] = "workers";
// More than events of this size take.
constexpr uint64_t kBacklogBytesPerEvent = 1'024;
constexpr uint64_t kLeastBacklogBytes = 64 << 20;

void CreateGroup(const std::shared_ptr<grpc::Channel>& channel,
                 const Storm& storm) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(storm.give_up()));
  v1::CreateGroupRequest request;
  request.set_namespace_(storm.name());
  request.set_name(kGroup);
  request.mutable_options()->set_max_backlog_bytes(
      kLeastBacklogBytes + storm.entries() * kBacklogBytesPerEvent);
  v1::CreateGroupResponse response;
  Check(v1::GroupService::NewStub(channel)->CreateGroup(&context, request,
                                                        &response));
}

}  // namespace

int RunGroup(const Arguments& arguments, absl::Time give_up) {
  const ServerChild server("timecached");
  const auto channel = Connect(server.address());
  Storm storm(channel, arguments.entries, StormLead(arguments), give_up);
  CreateGroup(channel, storm);
  Members members(server.address(), {.map = storm.name(),
                                     .group = kGroup,
                                     .members = arguments.members,
                                     .max_in_flight = arguments.max_in_flight,
                                     .events = arguments.entries,
                                     .give_up = give_up});
  members.AwaitStanding();
  const absl::Duration filled_before = FillAndWait(&storm);
  const double resident_kib = ResidentKib(server.pid());
  const double cpu_us = CpuUs(server.pid());
  const absl::Duration took = members.AwaitSettled() - storm.death();
  const double used_us = CpuUs(server.pid()) - cpu_us;
  const double grown_kib = ResidentKib(server.pid()) - resident_kib;
  members.Stop();

  Members::Sum sum;
  uint64_t fewest = UINT64_MAX;
  for (const Members::Sum& one : members.sums()) {
    sum.events += one.events;
    sum.messages += one.messages;
    sum.settles += one.settles;
    fewest = std::min(fewest, one.events);
  }
  const auto events = static_cast<double>(arguments.entries);
  Print({{"members", arguments.members},
         {"events", arguments.entries},
         // From the death until the last is settled.
         {"events_per_second", events / absl::ToDoubleSeconds(took)},
         {"server_cpu_us_per_event", used_us / events},
         {"last_ms", absl::ToDoubleMilliseconds(took)},
         {"events_per_message", events / static_cast<double>(sum.messages)},
         {"events_per_settle", events / static_cast<double>(sum.settles)},
         {"fewest_events_of_a_member", fewest},
         {"grown_bytes_per_event", grown_kib * 1024 / events},
         {"filled_before_ms", absl::ToDoubleMilliseconds(filled_before)}},
        arguments.json);
  return EXIT_SUCCESS;
}

}  // namespace timecache::bench

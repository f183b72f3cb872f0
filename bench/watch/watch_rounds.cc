// Very many watchers, and few entries that die at once, again and again.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/service/server_usage.h"
#include "bench/service/service_servers.h"
#include "bench/watch/watch_clients.h"
#include "bench/watch/watch_runs.h"
#include "bench/watch/watch_storm.h"
#include "grpcpp/grpcpp.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache::bench {
namespace {

constexpr char kMap[] = "rounds";
// Of a tenth of a second: what is put at once nearly always dies at once.
constexpr int kTtlSeconds = 1;
constexpr int kBuckets = 11;

v1::CreateNamespaceRequest Namespace() {
  v1::CreateNamespaceRequest request;
  request.set_name(kMap);
  request.mutable_options()->mutable_ttl()->set_seconds(kTtlSeconds);
  request.mutable_options()->set_num_buckets(kBuckets);
  return request;
}

// All in one request.
void Put(v1::TimeCacheService::Stub* stub, uint64_t entries,
         absl::Time give_up) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(give_up));
  v1::ExecuteRequest request;
  request.set_namespace_(kMap);
  AppendPuts(0, entries, &request);
  v1::ExecuteResponse response;
  Check(stub->Execute(&context, request, &response));
  for (const v1::OperationResult& result : response.results()) {
    if (result.has_error()) Fail("a put failed: " + result.error().message());
  }
}

// From each death to the last watcher's last event, where all of a round died
// at once.
std::vector<double> LastMs(const std::vector<Arrival>& arrivals,
                           uint64_t events_of_round) {
  struct Death {
    uint64_t events = 0;
    absl::Time last;
  };
  std::map<absl::Time, Death> deaths;
  for (const Arrival& arrival : arrivals) {
    Death& death = deaths[arrival.death];
    death.events += arrival.events;
    death.last = arrival.at;
  }
  std::vector<double> last_ms;
  for (const auto& [time, death] : deaths) {
    if (death.events != events_of_round) continue;
    last_ms.push_back(absl::ToDoubleMilliseconds(death.last - time));
  }
  return last_ms;
}

}  // namespace

int RunRounds(const Arguments& arguments, absl::Time give_up) {
  const ServerChild server("timecached");
  const auto channel = Connect(server.address());
  CreateNamespace(channel, Namespace(), give_up);
  const auto stub = v1::TimeCacheService::NewStub(channel);
  const double before_kib = ResidentKib(server.pid());
  Progress(absl::StrFormat("opening %d watches", arguments.watchers));
  Watchers watchers(
      server.address(),
      {.map = kMap, .watchers = arguments.watchers, .give_up = give_up});
  watchers.AwaitStanding();
  const double idle_kib = ResidentKib(server.pid()) - before_kib;
  const double cpu_us = CpuUs(server.pid());
  for (int round = 1; round <= arguments.rounds; ++round) {
    Progress(absl::StrFormat("round %d", round));
    watchers.Expect(arguments.entries * static_cast<uint64_t>(round));
    Put(stub.get(), arguments.entries, give_up);
    watchers.AwaitEvents();
  }
  const double used_us = CpuUs(server.pid()) - cpu_us;
  const double after_kib = ResidentKib(server.pid()) - before_kib;
  const auto watcher_count = static_cast<uint64_t>(arguments.watchers);
  std::vector<double> last_ms =
      LastMs(watchers.Stop(), arguments.entries * watcher_count);
  if (last_ms.empty()) Fail("no round died at once");
  const auto delivered =
      static_cast<double>(arguments.entries * watcher_count *
                          static_cast<uint64_t>(arguments.rounds));
  Print({{"watchers", arguments.watchers},
         {"entries", arguments.entries},
         {"idle_kib_per_watcher", idle_kib / arguments.watchers},
         {"kib_per_watcher_after", after_kib / arguments.watchers},
         {"server_cpu_us_per_event", used_us / delivered},
         {"last_ms", last_ms}},
        arguments.json);
  return EXIT_SUCCESS;
}

}  // namespace timecache::bench

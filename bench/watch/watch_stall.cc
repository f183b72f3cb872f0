// A watcher that does not read: what puts and the other watchers feel of it,
// and what the server keeps for it. The same load all the time; turn about the
// first watcher reads, and does not.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/service/paced_puts.h"
#include "bench/service/server_usage.h"
#include "bench/service/service_servers.h"
#include "bench/watch/watch_clients.h"
#include "bench/watch/watch_runs.h"
#include "bench/watch/watch_storm.h"

namespace timecache::bench {
namespace {

constexpr char kStallMap[] = "stall";
constexpr int kStallTtlSeconds = 1;
// A bucket dies every 50 ms.
constexpr int kStallBuckets = 21;
constexpr int kRetentionSeconds = 1;
// Until a change has had its effect.
constexpr absl::Duration kSettle = absl::Seconds(1);
constexpr absl::Duration kSampleEvery = absl::Milliseconds(100);

// A value, and how many there are of it.
using Weighted = std::vector<std::pair<double, uint64_t>>;

// One half of a round.
struct Half {
  bool stalled = false;
  absl::Time from;
  absl::Time to;
  Weighted puts_us;
  Weighted late_ms;
  double resident_kib = 0;
};

// `values` is sorted.
double Percentile(const Weighted& values, double percent) {
  uint64_t count = 0;
  for (const auto& [value, weight] : values) count += weight;
  const double rank = static_cast<double>(count) * percent / 100;
  uint64_t seen = 0;
  for (const auto& [value, weight] : values) {
    seen += weight;
    if (static_cast<double>(seen) >= rank) return value;
  }
  Fail("a percentile of nothing");
}

nlohmann::ordered_json Describe(const std::string& what, Weighted values) {
  std::sort(values.begin(), values.end());
  nlohmann::ordered_json described;
  for (const int percent : {50, 99, 100}) {
    described[absl::StrFormat("p%d_%s", percent, what)] =
        Percentile(values, percent);
  }
  return described;
}

v1::CreateNamespaceRequest Namespace(int64_t retention_bytes) {
  v1::CreateNamespaceRequest request;
  request.set_name(kStallMap);
  v1::NamespaceOptions* const options = request.mutable_options();
  options->mutable_ttl()->set_seconds(kStallTtlSeconds);
  options->set_num_buckets(kStallBuckets);
  options->mutable_event_retention()->set_seconds(kRetentionSeconds);
  options->set_event_retention_bytes(static_cast<uint64_t>(retention_bytes));
  return request;
}

Half Measure(bool stalled, int seconds, pid_t server, PacedPuts* puts) {
  absl::SleepFor(kSettle);
  puts->TakeLatenciesUs();
  Half half;
  half.stalled = stalled;
  half.from = absl::Now();
  half.to = half.from + absl::Seconds(seconds);
  while (absl::Now() < half.to) {
    half.resident_kib = std::max(half.resident_kib, ResidentKib(server));
    absl::SleepFor(std::min(kSampleEvery, half.to - absl::Now()));
  }
  for (const double latency_us : puts->TakeLatenciesUs()) {
    half.puts_us.emplace_back(latency_us, 1);
  }
  return half;
}

// Gives each half how late the events of its time came to the other watchers.
// Of a message with several deaths the first one counts.
void AddLateness(const std::vector<Arrival>& arrivals,
                 std::vector<Half>* halves) {
  for (const Arrival& arrival : arrivals) {
    if (arrival.watcher == 0) continue;
    for (Half& half : *halves) {
      if (arrival.at < half.from || arrival.at >= half.to) continue;
      half.late_ms.emplace_back(
          absl::ToDoubleMilliseconds(arrival.at - arrival.death),
          arrival.events);
    }
  }
}

void CheckSums(const std::vector<Watchers::Sum>& sums, uint64_t deaths) {
  for (const Watchers::Sum& sum : sums) {
    if (sum.events + sum.lost == deaths) continue;
    Fail(absl::StrFormat("%d events came and %d were lost, but %d died",
                         sum.events, sum.lost, deaths));
  }
  if (sums[0].lost == 0) {
    Fail("the stalled watcher lost nothing: let more die");
  }
}

nlohmann::ordered_json Describe(const std::vector<Half>& halves, bool stalled) {
  nlohmann::ordered_json described = nlohmann::ordered_json::array();
  for (const Half& half : halves) {
    if (half.stalled != stalled) continue;
    nlohmann::ordered_json one = Describe("put_us", half.puts_us);
    one.update(Describe("late_ms", half.late_ms));
    one["resident_mib"] = half.resident_kib / 1024;
    described.push_back(one);
  }
  return described;
}

}  // namespace

int RunStall(const Arguments& arguments, absl::Time give_up) {
  const ServerChild server("timecached");
  const auto channel = Connect(server.address());
  CreateNamespace(channel, Namespace(arguments.retention_bytes), give_up);
  Watchers watchers(server.address(), {.map = kStallMap,
                                       .watchers = arguments.watchers,
                                       .give_up = give_up,
                                       .first_can_stall = true});
  watchers.AwaitStanding();
  PacedPuts puts(channel, {.map = kStallMap,
                           .rate = arguments.rate,
                           .batched_rate = arguments.batched_rate,
                           .give_up = give_up});
  // Until as many die as are put.
  absl::SleepFor(absl::Seconds(kStallTtlSeconds + kRetentionSeconds));
  std::vector<Half> halves;
  for (int i = 0; i < 2 * arguments.rounds; ++i) {
    // No, yes; yes, no; no, yes: whatever changes with time reaches both.
    const bool stalled = i % 4 == 1 || i % 4 == 2;
    Progress(absl::StrFormat("round %d: %s", i / 2 + 1,
                             stalled ? "one stalled" : "none stalled"));
    if (stalled) {
      watchers.StallFirst();
    } else {
      watchers.ResumeFirst();
    }
    halves.push_back(Measure(stalled, arguments.seconds, server.pid(), &puts));
  }
  watchers.ResumeFirst();
  const uint64_t deaths = puts.Stop();
  watchers.Expect(deaths);
  watchers.AwaitEvents();
  AddLateness(watchers.Stop(), &halves);
  CheckSums(watchers.sums(), deaths);
  Print({{"watchers", arguments.watchers},
         {"deaths", deaths},
         {"deaths_per_second", arguments.rate + arguments.batched_rate},
         {"retention_mib",
          static_cast<double>(arguments.retention_bytes) / (1 << 20)},
         {"lost_by_stalled", watchers.sums()[0].lost},
         {"none_stalled", Describe(halves, false)},
         {"one_stalled", Describe(halves, true)}},
        arguments.json);
  return EXIT_SUCCESS;
}

}  // namespace timecache::bench

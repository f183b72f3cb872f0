// The runs of one storm: one watcher, and many.
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "bench/service/server_usage.h"
#include "bench/service/service_servers.h"
#include "bench/watch/watch_clients.h"
#include "bench/watch/watch_runs.h"
#include "bench/watch/watch_storm.h"

namespace timecache::bench {
namespace {

void CheckDeaths(const std::vector<Arrival>& arrivals, const Storm& storm) {
  for (const Arrival& arrival : arrivals) {
    if (arrival.death == storm.death()) continue;
    Fail("an event's death_time is not the one that all have");
  }
}

}  // namespace

int RunStorm(const Arguments& arguments, absl::Time give_up) {
  std::optional<ServerChild> child;
  if (arguments.address.empty()) child.emplace("timecached");
  const std::string address = child ? child->address() : arguments.address;
  Storm storm(Connect(address), arguments.entries, StormLead(arguments),
              give_up);
  Watchers watcher(address, {.map = storm.name(), .give_up = give_up});
  watcher.AwaitStanding();
  watcher.Expect(storm.entries());
  const absl::Duration filled_before = FillAndWait(&storm);
  const double cpu_us = child ? CpuUs(child->pid()) : 0;
  watcher.AwaitEvents();
  const double used_us = child ? CpuUs(child->pid()) - cpu_us : 0;
  const std::vector<Arrival> arrivals = watcher.Stop();
  CheckDeaths(arrivals, storm);

  const auto late_ms = [](const Arrival& arrival) {
    return absl::ToDoubleMilliseconds(arrival.at - arrival.death);
  };
  const auto entries = static_cast<double>(storm.entries());
  size_t median = 0;
  for (uint64_t events = arrivals[0].events; events <= storm.entries() / 2;) {
    events += arrivals[++median].events;
  }
  const double last_ms = late_ms(arrivals.back());
  nlohmann::ordered_json figures = {
      {"entries", storm.entries()},
      {"first_ms", late_ms(arrivals.front())},
      {"median_ms", late_ms(arrivals[median])},
      {"last_ms", last_ms},
      // From the death to the last event.
      {"events_per_second", entries / last_ms * 1e3},
      {"bytes_per_event", static_cast<double>(watcher.event_bytes()) / entries},
      {"messages", arrivals.size()},
      {"filled_before_ms", absl::ToDoubleMilliseconds(filled_before)}};
  if (child) figures["server_cpu_us_per_event"] = used_us / entries;
  Print(figures, arguments.json);
  return EXIT_SUCCESS;
}

int RunFanout(const Arguments& arguments, absl::Time give_up) {
  const ServerChild server("timecached");
  Storm storm(Connect(server.address()), arguments.entries,
              StormLead(arguments), give_up);
  const double resident_kib = ResidentKib(server.pid());
  Progress(absl::StrFormat("opening %d watches", arguments.watchers));
  Watchers watchers(server.address(), {.map = storm.name(),
                                       .watchers = arguments.watchers,
                                       .give_up = give_up});
  watchers.AwaitStanding();
  watchers.Expect(storm.entries());
  const double idle_kib = ResidentKib(server.pid()) - resident_kib;
  const absl::Duration filled_before = FillAndWait(&storm);
  const double cpu_us = CpuUs(server.pid());
  watchers.AwaitEvents();
  const double used_us = CpuUs(server.pid()) - cpu_us;
  const std::vector<Arrival> arrivals = watchers.Stop();
  CheckDeaths(arrivals, storm);

  const auto delivered =
      static_cast<double>(storm.entries()) * arguments.watchers;
  const absl::Duration took = arrivals.back().at - storm.death();
  Print({{"watchers", arguments.watchers},
         {"entries", storm.entries()},
         // Delivered in all, from the death to the last.
         {"events_per_second", delivered / absl::ToDoubleSeconds(took)},
         {"server_cpu_us_per_event", used_us / delivered},
         {"idle_kib_per_watcher", idle_kib / arguments.watchers},
         {"last_ms", absl::ToDoubleMilliseconds(took)},
         {"bytes_per_event",
          static_cast<double>(watchers.event_bytes()) / delivered},
         {"messages", arrivals.size()},
         {"filled_before_ms", absl::ToDoubleMilliseconds(filled_before)}},
        arguments.json);
  return EXIT_SUCCESS;
}

}  // namespace timecache::bench

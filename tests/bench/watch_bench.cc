// Events of entries that all die at once: how late each comes to one watcher
// (storm), and what it costs to tell many watchers (fanout).
//
// The server is a process of its own. Nothing is pinned to a processor: the
// server's threads, and the watchers' beside them, are what a storm is about.
#include <time.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "tests/bench/service_servers.h"
#include "tests/bench/watch_clients.h"
#include "tests/bench/watch_storm.h"

namespace timecache::bench {
namespace {

constexpr uint64_t kMaxEntries = 100'000'000;
constexpr int kMaxWatchers = 10'000;
// Beyond --timeout-seconds, which all calls keep: for a server that does not
// even start.
constexpr int kLastResortSeconds = 15;

struct Arguments {
  uint64_t entries = 0;
  int watchers = 1;
  int lead_ms = 0;
  int timeout_seconds = 120;
  std::string address;
  bool json = false;
};

// A line that is written over on a terminal.
void Progress(const std::string& line) {
  if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
}

void Print(const nlohmann::ordered_json& figures, bool json) {
  Progress("");
  if (json) {
    std::printf("%s\n", figures.dump().c_str());
    return;
  }
  for (const auto& [name, value] : figures.items()) {
    std::printf("%-26s %s\n", name.c_str(),
                value.is_number_float()
                    ? absl::StrFormat("%.3f", value.get<double>()).c_str()
                    : value.dump().c_str());
  }
}

// Room to open the watches and to fill at a tenth of the usual pace.
absl::Duration Lead(const Arguments& arguments) {
  if (arguments.lead_ms > 0) return absl::Milliseconds(arguments.lead_ms);
  return absl::Seconds(2) + absl::Milliseconds(arguments.watchers) +
         static_cast<double>(arguments.entries) * absl::Microseconds(10);
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  return grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
}

double CpuUs(pid_t pid) {
  clockid_t clock;
  timespec time = {};
  if (clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &time) != 0) {
    Fail("the server has ended");
  }
  return static_cast<double>(time.tv_sec) * 1e6 +
         static_cast<double>(time.tv_nsec) * 1e-3;
}

double ResidentKib(pid_t pid) {
  std::ifstream file(absl::StrFormat("/proc/%d/statm", pid));
  int64_t all_pages = 0;
  int64_t resident_pages = 0;
  if (!(file >> all_pages >> resident_pages)) Fail("the server has ended");
  return static_cast<double>(resident_pages * sysconf(_SC_PAGESIZE)) / 1024;
}

// Fills and lets time pass until just before the death.
absl::Duration FillAndWait(Storm* storm) {
  Progress(absl::StrFormat("putting %d entries", storm->entries()));
  const absl::Duration before = storm->Fill();
  Progress(absl::StrFormat("%d entries, dead in %s", storm->entries(),
                           absl::FormatDuration(before)));
  absl::SleepFor(storm->death() - absl::Now() - absl::Milliseconds(20));
  return before;
}

int RunStorm(const Arguments& arguments, absl::Time give_up) {
  std::optional<ServerChild> child;
  if (arguments.address.empty()) child.emplace("timecached");
  const std::string address = child ? child->address() : arguments.address;
  Storm storm(Connect(address), arguments.entries, Lead(arguments), give_up);
  Watchers watcher(address, 1, &storm);
  watcher.AwaitStanding();
  const absl::Duration filled_before = FillAndWait(&storm);
  const double cpu_us = child ? CpuUs(child->pid()) : 0;
  watcher.AwaitEvents();
  const double used_us = child ? CpuUs(child->pid()) - cpu_us : 0;
  const std::vector<Arrival> arrivals = watcher.Stop();

  const auto late_ms = [&storm](const Arrival& arrival) {
    return absl::ToDoubleMilliseconds(arrival.at - storm.death());
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
  Storm storm(Connect(server.address()), arguments.entries, Lead(arguments),
              give_up);
  const double resident_kib = ResidentKib(server.pid());
  Progress(absl::StrFormat("opening %d watches", arguments.watchers));
  Watchers watchers(server.address(), arguments.watchers, &storm);
  watchers.AwaitStanding();
  const double idle_kib = ResidentKib(server.pid()) - resident_kib;
  const absl::Duration filled_before = FillAndWait(&storm);
  const double cpu_us = CpuUs(server.pid());
  watchers.AwaitEvents();
  const double used_us = CpuUs(server.pid()) - cpu_us;
  const std::vector<Arrival> arrivals = watchers.Stop();

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

void AddCommon(CLI::App* command, Arguments* arguments) {
  command->add_option("--entries", arguments->entries, "Entries that die")
      ->required()
      ->check(CLI::Range(uint64_t{1}, kMaxEntries));
  command
      ->add_option("--lead-ms", arguments->lead_ms,
                   "From the start to the death; by default 2 s and 10 us an "
                   "entry and 1 ms a watcher")
      ->check(CLI::Range(100, 3'600'000));
  command
      ->add_option("--timeout-seconds", arguments->timeout_seconds,
                   "Give up after this long")
      ->check(CLI::Range(1, 3'600))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print one JSON object");
}

int Main(int argc, char** argv) {
  Arguments arguments;
  std::string serve;
  CLI::App app("Events of entries that all die at once", "watch_bench");
  app.require_subcommand(0, 1);
  app.add_option("--serve", serve, "Be the server (for itself)")
      ->check(CLI::IsMember({"timecached"}));
  CLI::App* const storm =
      app.add_subcommand("storm", "How late each event comes to one watcher");
  AddCommon(storm, &arguments);
  storm
      ->add_option("--address", arguments.address,
                   "A server that runs, instead of one of its own")
      ->type_name("HOST:PORT");
  CLI::App* const fanout =
      app.add_subcommand("fanout", "What it costs to tell many watchers");
  AddCommon(fanout, &arguments);
  fanout->add_option("--watchers", arguments.watchers, "Watchers, who get all")
      ->required()
      ->check(CLI::Range(1, kMaxWatchers));
  CLI11_PARSE(app, argc, argv);
  if (!serve.empty()) return ServeTimecached();
  if (!storm->parsed() && !fanout->parsed()) {
    std::fprintf(stderr, "watch_bench: say storm or fanout; see --help\n");
    return EXIT_FAILURE;
  }
  const auto bound_seconds =
      static_cast<unsigned>(arguments.timeout_seconds + kLastResortSeconds);
  alarm(bound_seconds);
  const absl::Time give_up =
      absl::Now() + absl::Seconds(arguments.timeout_seconds);
  return storm->parsed() ? RunStorm(arguments, give_up)
                         : RunFanout(arguments, give_up);
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }

// Events of entries that die: how late they come, what it costs to tell many
// watchers, what a stalled one does to the others, and what a consumer group
// takes.
//
// The server is a process of its own. Nothing is pinned to a processor: the
// server's threads, and the watchers' beside them, are what a storm is about.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/service/service_servers.h"
#include "bench/watch/watch_runs.h"
#include "bench/watch/watch_storm.h"

namespace timecache::bench {
namespace {

constexpr uint64_t kMaxEntries = 100'000'000;
// Of one Execute.
constexpr uint64_t kMaxRoundEntries = 4'096;
constexpr int kMaxWatchers = 10'000;
constexpr int kMaxMembers = 64;
constexpr int kMaxInFlight = 65'536;
constexpr int kMaxRounds = 1'000;
constexpr int kMaxRate = 200'000;
// Beyond --timeout-seconds, which all calls keep: for a server that does not
// even start.
constexpr int kLastResortSeconds = 15;

using Run = int (*)(const Arguments& arguments, absl::Time give_up);

void AddCommon(CLI::App* command, Arguments* arguments) {
  command
      ->add_option("--timeout-seconds", arguments->timeout_seconds,
                   "Give up after this long")
      ->check(CLI::Range(1, 3'600))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "Print one JSON object");
}

void AddStorm(CLI::App* command, Arguments* arguments) {
  AddCommon(command, arguments);
  command->add_option("--entries", arguments->entries, "Entries that die")
      ->required()
      ->check(CLI::Range(uint64_t{1}, kMaxEntries));
  command
      ->add_option("--lead-ms", arguments->lead_ms,
                   "From the start to the death; by default 2 s and 10 us an "
                   "entry and 1 ms a watcher")
      ->check(CLI::Range(100, 3'600'000));
}

void AddWatchers(CLI::App* command, Arguments* arguments) {
  command
      ->add_option("--watchers", arguments->watchers, "Watchers, who get all")
      ->required()
      ->check(CLI::Range(1, kMaxWatchers));
}

void AddRounds(CLI::App* command, Arguments* arguments) {
  command->add_option("--rounds", arguments->rounds)
      ->check(CLI::Range(1, kMaxRounds))
      ->capture_default_str();
}

CLI::App* AddStall(CLI::App* app, Arguments* arguments) {
  CLI::App* const stall = app->add_subcommand(
      "stall", "What a watcher that does not read does to the others");
  AddCommon(stall, arguments);
  AddWatchers(stall, arguments);
  AddRounds(stall, arguments);
  stall
      ->add_option("--seconds", arguments->seconds,
                   "Of each half of a round: none stalled, one stalled")
      ->check(CLI::Range(1, 600))
      ->capture_default_str();
  stall
      ->add_option("--rate", arguments->rate,
                   "Single puts a second; their latency is taken")
      ->check(CLI::Range(1, kMaxRate))
      ->capture_default_str();
  stall
      ->add_option("--batched-rate", arguments->batched_rate,
                   "Puts a second in batches beside them")
      ->check(CLI::Range(0, kMaxRate))
      ->capture_default_str();
  stall
      ->add_option("--retention-bytes", arguments->retention_bytes,
                   "What the server retains for who does not read")
      ->check(CLI::Range(int64_t{1} << 20, int64_t{1} << 36))
      ->capture_default_str();
  return stall;
}

CLI::App* AddGroup(CLI::App* app, Arguments* arguments) {
  CLI::App* const group = app->add_subcommand(
      "group", "What it costs a consumer group to take and settle all");
  AddStorm(group, arguments);
  group->add_option("--members", arguments->members)
      ->required()
      ->check(CLI::Range(1, kMaxMembers));
  group
      ->add_option("--max-in-flight", arguments->max_in_flight,
                   "Events that a member holds unsettled, at most")
      ->check(CLI::Range(1, kMaxInFlight))
      ->capture_default_str();
  return group;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  std::string serve;
  CLI::App app("Events of entries that die", "watch_bench");
  app.require_subcommand(0, 1);
  app.add_option("--serve", serve, "Be the server (for itself)")
      ->check(CLI::IsMember({"timecached"}));
  CLI::App* const storm = app.add_subcommand(
      "storm", "How late each event of a storm comes to one watcher");
  AddStorm(storm, &arguments);
  storm
      ->add_option("--address", arguments.address,
                   "A server that runs, instead of one of its own")
      ->type_name("HOST:PORT");
  CLI::App* const fanout =
      app.add_subcommand("fanout", "What it costs to tell many watchers");
  AddStorm(fanout, &arguments);
  AddWatchers(fanout, &arguments);
  CLI::App* const rounds = app.add_subcommand(
      "rounds", "How late the last of very many watchers gets its events");
  AddCommon(rounds, &arguments);
  AddWatchers(rounds, &arguments);
  AddRounds(rounds, &arguments);
  rounds->add_option("--entries", arguments.entries, "That die in a round")
      ->required()
      ->check(CLI::Range(uint64_t{1}, kMaxRoundEntries));
  CLI::App* const stall = AddStall(&app, &arguments);
  CLI::App* const group = AddGroup(&app, &arguments);
  CLI11_PARSE(app, argc, argv);
  if (!serve.empty()) return ServeTimecached();
  const std::pair<CLI::App*, Run> runs[] = {{storm, RunStorm},
                                            {fanout, RunFanout},
                                            {rounds, RunRounds},
                                            {stall, RunStall},
                                            {group, RunGroup}};
  const auto bound_seconds =
      static_cast<unsigned>(arguments.timeout_seconds + kLastResortSeconds);
  for (const auto& [command, run] : runs) {
    if (!command->parsed()) continue;
    alarm(bound_seconds);
    return run(arguments,
               absl::Now() + absl::Seconds(arguments.timeout_seconds));
  }
  std::fprintf(stderr,
               "watch_bench: say what to measure; see watch_bench --help\n");
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) {
  try {
    return timecache::bench::Main(argc, argv);
  } catch (const std::exception& error) {
    timecache::bench::Fail(error.what());
  }
}

#include "bench/peers/clients/group_run.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "CLI/CLI.hpp"
#include "bench/service/server_usage.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {
namespace {

// Time and the server's processor time, since it was made.
class Usage {
 public:
  explicit Usage(int pid) : pid_(pid), cpu_us_(CpuUs(pid)) {}

  double Seconds() const {
    return std::chrono::duration<double>(Clock::now() - began_).count();
  }
  double ServerUs() const { return CpuUs(pid_) - cpu_us_; }

 private:
  using Clock = std::chrono::steady_clock;

  const int pid_;
  const double cpu_us_;
  const Clock::time_point began_ = Clock::now();
};

void Run(const GroupArguments& arguments, const GroupPeer& peer) {
  const auto events = static_cast<double>(arguments.events);
  const Usage adding(arguments.server_pid);
  peer.add(arguments);
  const double added_seconds = adding.Seconds();
  const double added_us = adding.ServerUs();
  const Usage settling(arguments.server_pid);
  const auto requests = static_cast<double>(peer.settle(arguments));
  const nlohmann::ordered_json json = {
      {"members", arguments.members},
      {"events", arguments.events},
      {"count", arguments.count},
      {"events_per_second", events / settling.Seconds()},
      {"server_cpu_us_per_event", settling.ServerUs() / events},
      {"events_per_message", events / requests},
      {"added_per_second", events / added_seconds},
      {"added_cpu_us_per_event", added_us / events}};
  std::printf("%s\n", json.dump().c_str());
}

}  // namespace

int GroupMain(int argc, char** argv, const GroupPeer& peer) {
  GroupArguments arguments;
  CLI::App app(peer.about, peer.name);
  app.add_option("--port", arguments.port)
      ->required()
      ->check(CLI::Range(1, 65'535));
  app.add_option("--server-pid", arguments.server_pid,
                 "Whose processor time is taken")
      ->required();
  app.add_option("--consumers", arguments.members)->check(CLI::Range(1, 1'000));
  app.add_option("--events", arguments.events)->check(CLI::PositiveNumber);
  app.add_option("--count", arguments.count, "Events that one request takes")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--depth", arguments.depth,
                 "Requests that a member has in flight")
      ->check(CLI::Range(1, 16));
  app.add_option("--bytes", arguments.bytes, "Of an event's value")
      ->check(CLI::Range(1, 1 << 20));
  CLI11_PARSE(app, argc, argv);
  try {
    Run(arguments, peer);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", peer.name, error.what());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}

}  // namespace timecache::bench

// The program three_nodes: takes the flags of timecached with which the clients' tests
// start it for the scenarios of conformance, and serves a node of three; every
// namespace has kPartitions partitions, unless its options say otherwise. Its last line
// in the log, three_nodes_stopped, has the calls that nodes forwarded.

#include <csignal>
#include <cstdlib>
#include <iostream>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/main/config/config.h"
#include "server/main/config/flags.h"
#include "server/main/server_setup.h"
#include "server/main/signals.h"
#include "server/ops/log.h"
#include "tests/peer/three_nodes.h"

namespace timecache::test {
namespace {

constexpr int kPartitions = 16;

int Fail(absl::string_view what) {
  std::cerr << "three_nodes: " << what << std::endl;
  return EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  const auto parsed = server::ParseFlags(argc, argv);
  if (const int* exit_code = std::get_if<int>(&parsed)) return *exit_code;
  const auto& flags = std::get<server::Flags>(parsed);
  if (!flags.virtual_clock || !flags.config.empty() || !flags.journal.empty()) {
    return Fail("has neither a clock that runs, nor a file, nor a journal");
  }
  auto config = server::ReadConfig(flags);
  if (!config.ok()) return Fail(config.status().message());
  config->set_default_partitions(kPartitions);
  server::SetLogging(config->log());

  server::Signals signals;
  ThreeNodes nodes(*config);
  const absl::Status started = nodes.Start();
  if (!started.ok()) return Fail(started.message());
  server::Log(
      server::LogLevel::kInfo, "server_started",
      {{"address", nodes.address()}, {"other_address", nodes.other_address()}});
  while (signals.Next() == SIGHUP) {
  }
  nodes.Drain();
  server::Log(server::LogLevel::kInfo, "three_nodes_stopped",
              {{"forwarded_calls", nodes.forwarded_calls()}});
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace timecache::test

int main(int argc, char** argv) { return timecache::test::Main(argc, argv); }

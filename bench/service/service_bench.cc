// Unary Put and Get of timecached, and the Pipeline with messages of many puts
// or gets, beside a bare gRPC server with the same messages, client and server
// options: what the service costs on top of gRPC.
//
// The two servers are processes of their own and take turns, round by round, so
// that whatever else the machine does reaches both. A ratio is the median of
// the rounds' ratios.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/service/service_echo.h"
#include "bench/service/service_load.h"
#include "bench/service/service_servers.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {
namespace {

struct Case {
  const char* name;
  Load load;
};

constexpr Case kCases[] = {
    {"put", {true, true, 4, 16}},
    {"get", {false, true, 4, 16}},
    {"put", {true, true, 1, 1}},
    {"get", {false, true, 1, 1}},
    {"pipeline put", {true, false, 4, 4}},
    {"pipeline get", {false, false, 4, 4}},
    {"pipeline put", {true, false, 16, 1}},
    {"pipeline get", {false, false, 16, 1}},
    {"pipeline put", {true, false, 1, 1}},
    {"pipeline get", {false, false, 1, 1}},
};
constexpr size_t kMaxConnections = 256;

// Median, least and greatest of one figure over the rounds.
struct Spread {
  double median = 0;
  double least = 0;
  double greatest = 0;
};

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1
                            ? values[middle]
                            : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

Spread SpreadOf(const std::vector<Round>& rounds, double Round::*figure) {
  std::vector<double> values;
  values.reserve(rounds.size());
  for (const Round& round : rounds) values.push_back(round.*figure);
  return SpreadOf(values);
}

struct Outcome {
  Case of;
  std::vector<Round> real;
  std::vector<Round> echo;

  Spread Ratio() const {
    std::vector<double> ratios;
    for (size_t i = 0; i < real.size(); ++i) {
      ratios.push_back(real[i].calls_per_second / echo[i].calls_per_second);
    }
    return SpreadOf(ratios);
  }
};

// A line that is written over on a terminal.
void Progress(const std::string& line, bool last) {
  if (!isatty(STDERR_FILENO)) {
    if (last) std::fprintf(stderr, "%s\n", line.c_str());
    return;
  }
  std::fprintf(stderr, "\r\x1b[K%s", last ? "" : line.c_str());
}

Outcome Measure(const Case& c, LoadGenerator* real, LoadGenerator* echo,
                int rounds, absl::Duration duration) {
  Outcome outcome = {c, {}, {}};
  // Warms up connections, caches and branch predictors.
  real->Run(c.load, duration / 2);
  echo->Run(c.load, duration / 2);
  for (int i = 0; i < rounds; ++i) {
    // Neither has the better turn.
    if (i % 2 == 0) outcome.real.push_back(real->Run(c.load, duration));
    outcome.echo.push_back(echo->Run(c.load, duration));
    if (i % 2 == 1) outcome.real.push_back(real->Run(c.load, duration));
    Progress(
        absl::StrFormat("%s %dx%d: round %d of %d, %.0f/s beside %.0f/s",
                        c.name, c.load.connections, c.load.calls_in_flight,
                        i + 1, rounds, outcome.real.back().calls_per_second,
                        outcome.echo.back().calls_per_second),
        i + 1 == rounds);
  }
  return outcome;
}

// Single calls after idle times around one second, after which gRPC's callback
// threads sleep.
struct IdleTimes {
  std::vector<double> real_ms;
  std::vector<double> echo_ms;
};

IdleTimes MeasureIdle(LoadGenerator* real, LoadGenerator* echo) {
  constexpr int kCalls = 12;
  IdleTimes times;
  for (int i = 0; i < kCalls; ++i) {
    absl::SleepFor(absl::Milliseconds(990 + 10 * i));
    times.real_ms.push_back(real->TimeOneGetMs());
    times.echo_ms.push_back(echo->TimeOneGetMs());
    Progress(absl::StrFormat("get when idle: call %d of %d", i + 1, kCalls),
             i + 1 == kCalls);
  }
  return times;
}

void PrintIdle(const IdleTimes& times) {
  const auto row = [](const char* server, const std::vector<double>& times_ms) {
    const Spread spread = SpreadOf(times_ms);
    std::printf("%-17s %-11s %.2f ms [%.2f, %.2f]\n", "get idle", server,
                spread.median, spread.least, spread.greatest);
  };
  row("timecached", times.real_ms);
  row("bare gRPC", times.echo_ms);
}

void PrintTable(const std::vector<Outcome>& outcomes) {
  std::printf(
      "\nunary calls, and messages of %d operations on Pipeline streams, one a "
      "connection;\n%d keys of %d B, values of %d B; medians of the rounds "
      "[least, greatest]\n\n"
      "%-17s %-11s %-27s %8s %8s %14s %14s\n",
      static_cast<int>(kOperations), static_cast<int>(kKeys),
      static_cast<int>(kKeyBytes), static_cast<int>(kValueBytes), "call",
      "server", "calls/s", "p50 us", "p99 us", "server us/call",
      "client us/call");
  for (const Outcome& outcome : outcomes) {
    const Load& load = outcome.of.load;
    const std::string call = absl::StrFormat(
        "%s %dx%d", outcome.of.name, load.connections, load.calls_in_flight);
    const auto row = [&call](const char* server,
                             const std::vector<Round>& rounds) {
      const Spread rate = SpreadOf(rounds, &Round::calls_per_second);
      std::printf("%-17s %-11s %-27s %8.1f %8.1f %14.2f %14.2f\n", call.c_str(),
                  server,
                  absl::StrFormat("%.0f [%.0f, %.0f]", rate.median, rate.least,
                                  rate.greatest)
                      .c_str(),
                  SpreadOf(rounds, &Round::p50_us).median,
                  SpreadOf(rounds, &Round::p99_us).median,
                  SpreadOf(rounds, &Round::server_cpu_us_per_call).median,
                  SpreadOf(rounds, &Round::client_cpu_us_per_call).median);
    };
    row("timecached", outcome.real);
    row("bare gRPC", outcome.echo);
    const Spread ratio = outcome.Ratio();
    std::printf("%-17s %-11s %.3f [%.3f, %.3f]\n\n", call.c_str(), "ratio",
                ratio.median, ratio.least, ratio.greatest);
  }
}

void WriteJson(const std::string& path, const std::vector<Outcome>& outcomes) {
  std::ofstream file(path);
  for (const Outcome& outcome : outcomes) {
    const auto add = [&](const char* server, const std::vector<Round>& rounds) {
      for (const Round& round : rounds) {
        file << nlohmann::ordered_json{{"benchmark", "service"},
                                       {"call", outcome.of.name},
                                       {"server", server},
                                       {"connections",
                                        outcome.of.load.connections},
                                       {"calls_in_flight",
                                        outcome.of.load.calls_in_flight},
                                       {"calls_per_second",
                                        round.calls_per_second},
                                       {"p50_us", round.p50_us},
                                       {"p99_us", round.p99_us},
                                       {"server_cpu_us_per_call",
                                        round.server_cpu_us_per_call},
                                       {"client_cpu_us_per_call",
                                        round.client_cpu_us_per_call}}
             << "\n";
      }
    };
    add("timecached", outcome.real);
    add("bare gRPC", outcome.echo);
  }
  file.flush();
  if (!file) {
    std::fprintf(stderr, "service_bench: cannot write %s\n", path.c_str());
  }
}

std::vector<Case> CasesOf(size_t streams) {
  if (streams == 0) return {std::begin(kCases), std::end(kCases)};
  return {{"pipeline put", {true, false, streams, 1}},
          {"pipeline get", {false, false, streams, 1}}};
}

int RunAll(size_t streams, int rounds, int round_ms, const std::string& json) {
  const std::vector<Case> cases = CasesOf(streams);
  const ServerChild real_server("timecached");
  const ServerChild echo_server("echo");
  // After the servers were started: they see all processors and take the rest.
  PinTo(false);
  LoadGenerator real(real_server.address(), real_server.pid());
  LoadGenerator echo(echo_server.address(), echo_server.pid());
  Progress("filling", false);
  real.Fill();
  std::vector<Outcome> outcomes;
  outcomes.reserve(cases.size());
  for (const Case& c : cases) {
    outcomes.push_back(
        Measure(c, &real, &echo, rounds, absl::Milliseconds(round_ms)));
  }
  std::optional<IdleTimes> idle;
  if (streams == 0) idle = MeasureIdle(&real, &echo);
  Progress("", true);
  PrintTable(outcomes);
  if (idle.has_value()) PrintIdle(*idle);
  if (!json.empty()) WriteJson(json, outcomes);
  return EXIT_SUCCESS;
}

int Main(int argc, char** argv) {
  int rounds = 40;
  int round_ms = 200;
  std::string json;
  size_t streams = 0;
  std::string serve;
  CLI::App app("Put, Get and Pipeline of timecached beside bare gRPC",
               "service_bench");
  app.add_option("--rounds", rounds, "Rounds of each server and call")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_option("--round-ms", round_ms, "Length of a round")
      ->check(CLI::Range(10, 60'000))
      ->capture_default_str();
  app.add_option("--json", json, "Write every round as a line of JSON")
      ->type_name("FILE");
  app.add_option("--streams", streams,
                 "Only Pipelines, so many, each with a connection of its own "
                 "and one message in flight")
      ->check(CLI::Range(size_t{1}, kMaxConnections));
  app.add_option("--serve", serve, "Be one of the servers (for itself)")
      ->check(CLI::IsMember({"timecached", "echo"}));
  CLI11_PARSE(app, argc, argv);
  if (!serve.empty()) PinTo(true);
  if (serve == "timecached") return ServeTimecached();
  if (serve == "echo") return ServeEcho();
  return RunAll(streams, rounds, round_ms, json);
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }

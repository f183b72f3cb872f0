// Puts and gets on Redis or memcached, by the flags and with the figures of
// `timecachectl bench`: the same keys, values, connections and depth.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "bench/peers/clients/load_loop.h"
#include "bench/peers/clients/peer_protocol.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Arguments {
  std::string protocol = "redis";
  std::string order = "random";
  std::string timeline;
  int put_percent = 100;
  Expiry expiry;
  std::string write = "set";
  std::string script_sha;
  int wait_replicas = 0;
  LoadOptions load;
};

RedisWrite ToRedisWrite(const Arguments& arguments) {
  using Kind = RedisWrite::Kind;
  return {.kind = arguments.write == "append"   ? Kind::kAppend
                  : arguments.write == "incrby" ? Kind::kIncrBy
                  : arguments.write == "gather" ? Kind::kGather
                                                : Kind::kSet,
          .script_sha = arguments.script_sha,
          .replicas = arguments.wait_replicas};
}

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double Us(uint64_t duration_ns) {
  return static_cast<double>(duration_ns) / 1e3;
}

void WriteTimeline(const std::string& path, const LoadResult& result) {
  std::ofstream file(path);
  for (size_t i = 0; i < result.timeline.size(); ++i) {
    const cli::LatencyHistogram& latency = result.timeline[i];
    file << Json{{"second", i + 1},
                 {"operations", latency.count()},
                 {"p50_us", Us(latency.PercentileNs(50))},
                 {"p99_9_us", Us(latency.PercentileNs(99.9))},
                 {"max_us", Us(latency.max_ns())}}
         << '\n';
  }
}

int Run(const Arguments& arguments) {
  const auto make_protocol = [&arguments] {
    return arguments.protocol == "redis"
               ? MakeRedisProtocol(arguments.expiry, ToRedisWrite(arguments))
               : MakeMemcachedProtocol(arguments.expiry);
  };
  const LoadResult result =
      RunLoad(arguments.load, make_protocol, !arguments.timeline.empty());
  const cli::LatencyHistogram& latency = result.latency;
  const Json json = {{"operations", latency.count()},
                     {"elapsed_seconds", result.seconds},
                     {"operations_per_second",
                      static_cast<double>(latency.count()) / result.seconds},
                     {"hits", result.hits},
                     {"misses", result.misses},
                     {"errors", result.errors},
                     {"latency_us",
                      {{"p50", Us(latency.PercentileNs(50))},
                       {"p90", Us(latency.PercentileNs(90))},
                       {"p99", Us(latency.PercentileNs(99))},
                       {"p99_9", Us(latency.PercentileNs(99.9))},
                       {"max", Us(latency.max_ns())}}},
                     {"client_cpu_seconds", CpuSeconds()}};
  if (!arguments.timeline.empty()) WriteTimeline(arguments.timeline, result);
  std::printf("%s\n", json.dump().c_str());
  return result.errors == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  LoadOptions& load = arguments.load;
  CLI::App app("Puts and gets on a peer; figures as one line of JSON",
               "peer_load");
  app.add_option("--protocol", arguments.protocol)
      ->check(CLI::IsMember({"redis", "memcached"}));
  app.add_option("--port", load.ports, "Connections take them in turn")
      ->required()
      ->check(CLI::Range(1, 65535));
  app.add_option("--key-prefix", load.key_prefixes, "Of keys, for each --port");
  app.add_option("--wait-replicas", arguments.wait_replicas,
                 "Redis answers when so many replicas have the writes")
      ->check(CLI::Range(0, 5));
  app.add_option("--put-percent", arguments.put_percent, "The rest are gets")
      ->check(CLI::Range(0, 100));
  app.add_option("--write", arguments.write, "What Redis does for a put")
      ->check(CLI::IsMember({"set", "append", "incrby", "gather"}));
  app.add_option("--script-sha", arguments.script_sha, "Of --write gather");
  app.add_option("--keys", load.keys)->check(CLI::PositiveNumber);
  app.add_option("--first-key", load.first_key);
  app.add_option("--order", arguments.order)
      ->check(CLI::IsMember({"random", "sequential"}));
  app.add_option("--key-bytes", load.key_bytes)->check(CLI::Range(16, 250));
  app.add_option("--value-bytes", load.value_bytes)
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--ttl-ms", arguments.expiry.ttl_ms);
  app.add_option("--deadline-unix-ms", arguments.expiry.deadline_ms,
                 "All expire at this time, instead of --ttl-ms");
  app.add_option("--connections", load.connections)
      ->check(CLI::Range(1, kMaxConnections));
  app.add_option("--depth", load.depth)->check(CLI::Range(1, kMaxDepth));
  CLI::Option* const operations =
      app.add_option("--operations", load.operations)
          ->check(CLI::PositiveNumber);
  app.add_option("--seconds", load.seconds)
      ->check(CLI::PositiveNumber)
      ->excludes(operations);
  app.add_option("--rate", load.rate, "Operations per second, paced")
      ->check(CLI::PositiveNumber);
  app.add_option("--timeline", arguments.timeline,
                 "Write a line of JSON for each second")
      ->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  load.put_share = arguments.put_percent / 100.0;
  load.sequential = arguments.order == "sequential";
  if (load.operations == 0 && load.seconds == 0) {
    std::fprintf(stderr, "peer_load: --operations or --seconds is required\n");
    return 2;
  }
  try {
    return Run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "peer_load: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }

// A storm on Redis: many keys with one deadline, and one subscriber that tells
// how late each event of an expired key comes. The server must have been
// started with notify-keyspace-events Ex, and no limit on a subscriber's
// buffer.
#include <hiredis/hiredis.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/peers/clients/load_loop.h"
#include "bench/peers/clients/peer_protocol.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr int kFillDepth = 100;
constexpr int kPollMs = 100;

struct Arguments {
  int port = 0;
  uint64_t entries = 1'000'000;
  int value_bytes = 64;
  int64_t lead_ms = 10'000;
  int64_t patience_ms = 120'000;
};

double UnixSeconds() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

using Context = std::unique_ptr<redisContext, decltype(&redisFree)>;

Context Connect(int port) {
  Context context(redisConnect(kHost, port), &redisFree);
  if (context == nullptr || context->err != 0) {
    throw std::runtime_error("no Redis at port " + std::to_string(port));
  }
  return context;
}

void Command(redisContext* context, const char* command) {
  void* const reply = redisCommand(context, command);
  if (reply == nullptr) throw std::runtime_error(context->errstr);
  const bool failed =
      static_cast<redisReply*>(reply)->type == REDIS_REPLY_ERROR;
  freeReplyObject(reply);
  if (failed) throw std::runtime_error(std::string("refused: ") + command);
}

// Reads the events of all entries. How late each was, in seconds, in order of
// arrival. Messages that one read brings arrived together.
std::vector<double> Lateness(redisContext* subscriber,
                             const Arguments& arguments, double deadline) {
  std::vector<double> late;
  late.reserve(arguments.entries);
  const double give_up =
      deadline + static_cast<double>(arguments.patience_ms) / 1e3;
  // Only the type of a message is needed: they all come from the one channel.
  subscriber->reader->fn = nullptr;
  while (late.size() < arguments.entries) {
    void* reply = nullptr;
    if (redisGetReplyFromReader(subscriber, &reply) != REDIS_OK) {
      throw std::runtime_error(subscriber->errstr);
    }
    if (reply != nullptr) {
      late.push_back(UnixSeconds() - deadline);
      continue;
    }
    if (UnixSeconds() > give_up) break;
    pollfd poll_for = {subscriber->fd, POLLIN, 0};
    if (poll(&poll_for, 1, kPollMs) <= 0) continue;
    if (redisBufferRead(subscriber) != REDIS_OK) {
      throw std::runtime_error(subscriber->errstr);
    }
  }
  return late;
}

void Fill(const Arguments& arguments, int64_t deadline_ms) {
  LoadOptions load;
  load.ports = {arguments.port};
  load.depth = kFillDepth;
  load.keys = load.operations = arguments.entries;
  load.sequential = true;
  load.value_bytes = arguments.value_bytes;
  const LoadResult result = RunLoad(
      load,
      [deadline_ms] {
        return MakeRedisProtocol({.ttl_ms = 0, .deadline_ms = deadline_ms});
      },
      /*with_timeline=*/false);
  if (result.puts != arguments.entries) {
    throw std::runtime_error("Redis did not store all entries");
  }
}

int Run(const Arguments& arguments) {
  const auto deadline_ms =
      static_cast<int64_t>(UnixSeconds() * 1e3) + arguments.lead_ms;
  const double deadline = static_cast<double>(deadline_ms) / 1e3;
  Fill(arguments, deadline_ms);
  const double filled_before = deadline - UnixSeconds();
  if (filled_before <= 0) {
    throw std::runtime_error("filling took longer than --lead-ms");
  }
  const Context subscriber = Connect(arguments.port);
  Command(subscriber.get(), "SUBSCRIBE __keyevent@0__:expired");
  std::vector<double> late = Lateness(subscriber.get(), arguments, deadline);
  if (late.empty()) throw std::runtime_error("no event came");
  const double first = late.front();
  const double last = late.back();
  std::sort(late.begin(), late.end());
  const nlohmann::ordered_json json = {
      {"entries", arguments.entries},
      {"events", late.size()},
      {"first_ms", first * 1e3},
      {"median_ms", late[late.size() / 2] * 1e3},
      {"last_ms", last * 1e3},
      {"events_per_second", static_cast<double>(late.size()) / last},
      {"filled_before_ms", filled_before * 1e3}};
  std::printf("%s\n", json.dump().c_str());
  return late.size() == arguments.entries ? EXIT_SUCCESS : EXIT_FAILURE;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("How late Redis tells of keys with one deadline", "redis_storm");
  app.add_option("--port", arguments.port)
      ->required()
      ->check(CLI::Range(1, 65535));
  app.add_option("--entries", arguments.entries)->check(CLI::PositiveNumber);
  app.add_option("--value-bytes", arguments.value_bytes);
  app.add_option("--lead-ms", arguments.lead_ms,
                 "From the first put to the deadline");
  app.add_option("--patience-ms", arguments.patience_ms,
                 "How long after the deadline events are waited for");
  CLI11_PARSE(app, argc, argv);
  try {
    return Run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "redis_storm: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }

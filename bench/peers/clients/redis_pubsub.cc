// Redis Pub/Sub: publishers that send as fast as Redis takes it, in pipelines,
// and subscribers that all get everything. The server must have been started
// with no limit on a subscriber's buffer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "bench/peers/clients/resp_connection.h"
#include "bench/service/server_usage.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {
namespace {

constexpr char kChannel[] = "bench";

struct Arguments {
  int port = 0;
  int server_pid = 0;
  int subscribers = 100;
  uint64_t messages = 100'000;
  int bytes = 80;
  int publishers = 1;
  int depth = 1'000;
};

using Clock = std::chrono::steady_clock;
using Connections = std::vector<std::unique_ptr<RespConnection>>;

// All on one thread, as Redis is: the other processor is Redis's.
class PubSub {
 public:
  explicit PubSub(const Arguments& arguments) : arguments_(arguments) {
    const std::string payload(static_cast<size_t>(arguments.bytes), 'v');
    AppendCommand({"PUBLISH", kChannel, payload}, &publish_);
    AppendCommand({"message", kChannel, payload}, &frame_);
    for (int i = 0; i < arguments.subscribers; ++i) Subscribe(i);
    for (int i = 0; i < arguments.publishers; ++i) {
      publishers_.push_back(std::make_unique<RespConnection>(arguments.port));
      poller_.Add(*publishers_.back(), arguments.subscribers + i);
    }
    unanswered_.resize(publishers_.size());
    wants_write_.resize(publishers_.size());
    counts_.resize(subscribers_.size());
  }

  // Publishes everything; returns once all have got it.
  void Run() {
    for (size_t i = 0; i < publishers_.size(); ++i) Publish(i);
    while (complete_ < subscribers_.size() || answered_ < arguments_.messages) {
      for (const int number : poller_.Wait()) {
        const auto index = static_cast<size_t>(number);
        if (index < subscribers_.size()) {
          Take(index);
        } else {
          Answers(index - subscribers_.size());
        }
      }
    }
  }

 private:
  void Subscribe(int number) {
    auto connection = std::make_unique<RespConnection>(arguments_.port);
    connection->Append({"SUBSCRIBE", kChannel});
    // *3, subscribe, the channel, how many it has.
    for (int i = 0; i < 4; ++i) connection->Await();
    poller_.Add(*connection, number);
    subscribers_.push_back(std::move(connection));
  }

  // Every message is the same bytes: what came is compared with them.
  void Take(size_t index) {
    RespConnection* const subscriber = subscribers_[index].get();
    subscriber->Receive();
    const std::string_view received = subscriber->received();
    size_t taken = 0;
    for (; received.size() - taken >= frame_.size(); taken += frame_.size()) {
      if (received.compare(taken, frame_.size(), frame_) != 0) {
        throw std::runtime_error("a subscriber got what was not published");
      }
      ++counts_[index];
    }
    subscriber->Consume(taken);
    if (taken > 0 && counts_[index] == arguments_.messages) ++complete_;
  }

  void Answers(size_t index) {
    RespConnection* const publisher = publishers_[index].get();
    publisher->Receive();
    RespToken token;
    while (publisher->Next(&token)) {
      if (token.number != arguments_.subscribers) {
        throw std::runtime_error("a message did not reach all subscribers");
      }
      --unanswered_[index];
      ++answered_;
    }
    Publish(index);
  }

  // Keeps up to `depth` messages unanswered, half of them at a time.
  void Publish(size_t index) {
    RespConnection* const publisher = publishers_[index].get();
    if (unanswered_[index] <= arguments_.depth / 2) {
      while (unanswered_[index] < arguments_.depth &&
             published_ < arguments_.messages) {
        publisher->AppendRaw(publish_);
        ++unanswered_[index];
        ++published_;
      }
    }
    const bool want = !publisher->Flush();
    if (want == wants_write_[index]) return;
    wants_write_[index] = want;
    poller_.WantWrite(*publisher, static_cast<int>(subscribers_.size() + index),
                      want);
  }

  const Arguments& arguments_;
  std::string publish_;
  std::string frame_;
  RespPoller poller_;
  Connections subscribers_;
  Connections publishers_;
  std::vector<uint64_t> counts_;
  std::vector<int> unanswered_;
  std::vector<bool> wants_write_;
  uint64_t published_ = 0;
  uint64_t answered_ = 0;
  size_t complete_ = 0;
};

int Run(const Arguments& arguments) {
  PubSub pubsub(arguments);
  const double cpu_us = CpuUs(arguments.server_pid);
  const auto began = Clock::now();
  pubsub.Run();
  const std::chrono::duration<double> took = Clock::now() - began;
  const double used_us = CpuUs(arguments.server_pid) - cpu_us;
  const double delivered =
      static_cast<double>(arguments.messages) * arguments.subscribers;
  const nlohmann::ordered_json json = {
      {"watchers", arguments.subscribers},
      {"entries", arguments.messages},
      {"publishers", arguments.publishers},
      {"depth", arguments.depth},
      {"events_per_second", delivered / took.count()},
      {"server_cpu_us_per_event", used_us / delivered}};
  std::printf("%s\n", json.dump().c_str());
  return EXIT_SUCCESS;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("Redis Pub/Sub with many subscribers", "redis_pubsub");
  app.add_option("--port", arguments.port)
      ->required()
      ->check(CLI::Range(1, 65'535));
  app.add_option("--server-pid", arguments.server_pid,
                 "Whose processor time is taken")
      ->required();
  app.add_option("--subscribers", arguments.subscribers)
      ->check(CLI::Range(1, 10'000));
  app.add_option("--messages", arguments.messages)->check(CLI::PositiveNumber);
  app.add_option("--bytes", arguments.bytes, "Of a message")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--publishers", arguments.publishers)
      ->check(CLI::Range(1, 100));
  app.add_option("--depth", arguments.depth,
                 "Messages that a publisher has unanswered")
      ->check(CLI::Range(2, 100'000));
  CLI11_PARSE(app, argc, argv);
  try {
    return Run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "redis_pubsub: %s\n", error.what());
    return EXIT_FAILURE;
  }
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }

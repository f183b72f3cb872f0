// A durable pull consumer on a stream of JetStream in memory: everything is
// added first; then members fetch from it in parallel, each so many messages at
// a time, and acknowledge each of them.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/peers/clients/group_run.h"
#include "bench/peers/clients/nats_connection.h"
#include "nlohmann/json.hpp"

namespace timecache::bench {
namespace {

using nlohmann::json;

constexpr char kStream[] = "events";
constexpr char kFetch[] = "$JS.API.CONSUMER.MSG.NEXT.events.workers";
constexpr char kInfo[] = "CONSUMER.INFO.events.workers";
constexpr int kSid = 2;
constexpr uint64_t kAddDepth = 1'000;

// One that fetches and acknowledges. Its acknowledgements go with its next
// fetch, in one write.
class Member {
 public:
  explicit Member(const GroupArguments& arguments)
      : connection_(arguments.port),
        fetched_(connection_.Inbox(kSid)),
        fetch_(json{{"batch", arguments.count}, {"no_wait", true}}.dump()),
        count_(arguments.count),
        bytes_(static_cast<size_t>(arguments.bytes)) {
    for (int i = 0; i < arguments.depth; ++i) Fetch();
    connection_.transport().Flush();
  }

  const RespConnection& transport() const { return connection_.transport(); }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t fetches() const { return fetches_; }

  // There may be something to read. Returns whether all was sent.
  bool OnReady() {
    connection_.transport().Receive();
    NatsMessage message;
    while (connection_.Next(&message)) OnMessage(message);
    return connection_.transport().Flush();
  }

 private:
  void OnMessage(const NatsMessage& message) {
    // A fetch that found less than it asked for ends so, in a message of its
    // own: the stream is at its end.
    if (!message.header.empty()) return;
    if (message.payload.size() != bytes_) {
      throw std::runtime_error("a message came without its value");
    }
    connection_.Publish(message.reply, "", "+ACK");
    ++acknowledged_;
    if (acknowledged_ % static_cast<uint64_t>(count_) == 0) Fetch();
  }

  void Fetch() {
    connection_.Publish(kFetch, fetched_, fetch_);
    ++fetches_;
  }

  NatsConnection connection_;
  const std::string fetched_;
  const std::string fetch_;
  const int count_;
  const size_t bytes_;
  uint64_t acknowledged_ = 0;
  uint64_t fetches_ = 0;
};

void Add(const GroupArguments& arguments) {
  NatsConnection connection(arguments.port);
  connection.Request(std::string("STREAM.CREATE.") + kStream,
                     {{"name", kStream},
                      {"subjects", {kStream}},
                      {"storage", "memory"},
                      {"num_replicas", 1},
                      {"discard", "new"}});
  const std::string added = connection.Inbox(kSid);
  const std::string value(static_cast<size_t>(arguments.bytes), 'v');
  for (uint64_t i = 0; i < arguments.events; i += kAddDepth) {
    const uint64_t count = std::min(kAddDepth, arguments.events - i);
    for (uint64_t j = 0; j < count; ++j) {
      connection.Publish(kStream, added, value);
    }
    for (uint64_t j = 0; j < count; ++j) {
      if (connection.Await().payload.find("\"seq\"") ==
          std::string_view::npos) {
        throw std::runtime_error("NATS did not store a message");
      }
    }
  }
  connection.Request(
      std::string("CONSUMER.DURABLE.CREATE.") + kStream + ".workers",
      {{"stream_name", kStream},
       {"config",
        {{"durable_name", "workers"},
         {"ack_policy", "explicit"},
         {"ack_wait", 30'000'000'000},
         {"max_ack_pending", -1},
         {"max_waiting", 10'000},
         {"mem_storage", true}}}});
}

// Whether the server has all acknowledgements: they have no answer.
bool AllSettled(NatsConnection* connection) {
  const json info = connection->Request(kInfo, nullptr);
  return info.at("num_pending") == 0 && info.at("num_ack_pending") == 0;
}

uint64_t Settle(const GroupArguments& arguments) {
  NatsConnection observer(arguments.port);
  RespPoller poller;
  std::vector<std::unique_ptr<Member>> members;
  for (int i = 0; i < arguments.members; ++i) {
    members.push_back(std::make_unique<Member>(arguments));
    poller.Add(members.back()->transport(), i);
  }
  const auto total = [&members](uint64_t (Member::*count)() const) {
    uint64_t sum = 0;
    for (const auto& member : members) sum += (member.get()->*count)();
    return sum;
  };
  while (total(&Member::acknowledged) < arguments.events) {
    for (const int number : poller.Wait()) {
      const auto& member = members[static_cast<size_t>(number)];
      poller.WantWrite(member->transport(), number, !member->OnReady());
    }
  }
  while (!AllSettled(&observer)) {
    for (const auto& member : members) member->OnReady();
  }
  return total(&Member::fetches);
}

int Main(int argc, char** argv) {
  return GroupMain(
      argc, argv,
      {"nats_group", "A durable pull consumer of NATS JetStream", Add, Settle});
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }

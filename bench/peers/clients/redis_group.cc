// A Redis Stream with a consumer group: everything is added first, in
// pipelines; then consumers read it in parallel, each so many entries at a
// time, and acknowledge all of them.
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/peers/clients/group_run.h"
#include "bench/peers/clients/resp_connection.h"

namespace timecache::bench {
namespace {

constexpr char kStream[] = "events";
constexpr char kGroup[] = "workers";
constexpr uint64_t kAddDepth = 1'000;

// One that reads and acknowledges. Its acknowledgement goes with its next read,
// in one write; that of the last read comes back alone.
class Consumer {
 public:
  Consumer(const GroupArguments& arguments, int number)
      : connection_(arguments.port),
        bytes_(arguments.bytes),
        depth_(arguments.depth) {
    AppendCommand(
        {"XREADGROUP", "GROUP", kGroup, "c" + std::to_string(number), "COUNT",
         std::to_string(arguments.count), "STREAMS", kStream, ">"},
        &read_);
  }

  const RespConnection& connection() const { return connection_; }
  // Whether the stream is at its end and all is acknowledged.
  bool done() const { return ended_reads_ == depth_ && unacknowledged_ == 0; }
  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t reads() const { return reads_; }

  void Start() {
    for (int i = 0; i < depth_; ++i) connection_.AppendRaw(read_);
    connection_.Flush();
  }

  // There may be something to read. Returns whether all was sent.
  bool OnReady() {
    connection_.Receive();
    RespToken token;
    while (connection_.Next(&token)) OnToken(token);
    return connection_.Flush();
  }

 private:
  // [[stream, [[id, [field, value]], ...]]] is *1 *2 $ *n, and for each entry
  // *2 $id *2 $ $; an end is *-1. An acknowledgement's answer is a number.
  void OnToken(const RespToken& token) {
    if (token.type == ':') {
      acknowledged_ += static_cast<uint64_t>(token.number);
      unacknowledged_ -= static_cast<uint64_t>(token.number);
      return;
    }
    if (token.number < 0) {
      ++ended_reads_;
      return;
    }
    if (head_tokens_ < 4) {
      if (++head_tokens_ == 4) entries_left_ = token.number;
      return;
    }
    ++entry_tokens_;
    if (entry_tokens_ == 2) {
      AppendBulk(token.text, &ids_);
      ++ids_in_it_;
    } else if (entry_tokens_ == 5) {
      if (token.number != bytes_) {
        throw std::runtime_error("an entry came without its value");
      }
      entry_tokens_ = 0;
      if (--entries_left_ == 0) Acknowledge();
    }
  }

  void Acknowledge() {
    head_tokens_ = 0;
    ++reads_;
    const uint64_t words = 3 + ids_in_it_;
    unacknowledged_ += ids_in_it_;
    ids_in_it_ = 0;
    connection_.AppendRaw("*" + std::to_string(words) + "\r\n");
    std::string head;
    AppendBulk("XACK", &head);
    AppendBulk(kStream, &head);
    AppendBulk(kGroup, &head);
    connection_.AppendRaw(head);
    connection_.AppendRaw(ids_);
    ids_.clear();
    connection_.AppendRaw(read_);
  }

  RespConnection connection_;
  const int bytes_;
  const int depth_;
  std::string read_;
  // Of the entries that came, as they go into the acknowledgement.
  std::string ids_;
  uint64_t ids_in_it_ = 0;
  int head_tokens_ = 0;
  int entry_tokens_ = 0;
  int64_t entries_left_ = 0;
  // That found nothing: as many as it has in flight when the stream is at its
  // end.
  int ended_reads_ = 0;
  uint64_t unacknowledged_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t reads_ = 0;
};

// An entry has one field: less to store and to send than two, or than a name of
// its own for each.
void Add(const GroupArguments& arguments) {
  RespConnection connection(arguments.port);
  connection.Append({"XGROUP", "CREATE", kStream, kGroup, "0", "MKSTREAM"});
  connection.Await();
  std::string add;
  AppendCommand({"XADD", kStream, "*", "e",
                 std::string(static_cast<size_t>(arguments.bytes), 'v')},
                &add);
  for (uint64_t i = 0; i < arguments.events; i += kAddDepth) {
    const uint64_t count = std::min(kAddDepth, arguments.events - i);
    for (uint64_t j = 0; j < count; ++j) connection.AppendRaw(add);
    for (uint64_t j = 0; j < count; ++j) connection.Await();
  }
}

uint64_t Settle(const GroupArguments& arguments) {
  RespPoller poller;
  std::vector<std::unique_ptr<Consumer>> consumers;
  for (int i = 0; i < arguments.members; ++i) {
    consumers.push_back(std::make_unique<Consumer>(arguments, i));
    poller.Add(consumers.back()->connection(), i);
  }
  for (const auto& consumer : consumers) consumer->Start();
  const auto is_done = [](const auto& consumer) { return consumer->done(); };
  while (!std::all_of(consumers.begin(), consumers.end(), is_done)) {
    for (const int number : poller.Wait()) {
      const auto& consumer = consumers[static_cast<size_t>(number)];
      poller.WantWrite(consumer->connection(), number, !consumer->OnReady());
    }
  }
  uint64_t acknowledged = 0;
  uint64_t reads = 0;
  for (const auto& consumer : consumers) {
    acknowledged += consumer->acknowledged();
    reads += consumer->reads();
  }
  if (acknowledged != arguments.events) {
    throw std::runtime_error(std::to_string(acknowledged) +
                             " entries were acknowledged");
  }
  return reads;
}

int Main(int argc, char** argv) {
  return GroupMain(
      argc, argv,
      {"redis_group", "A Redis Stream with a consumer group", Add, Settle});
}

}  // namespace
}  // namespace timecache::bench

int main(int argc, char** argv) { return timecache::bench::Main(argc, argv); }

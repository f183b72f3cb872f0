// Processes messages at least once, as a Storm topology does: a spout emits
// sentences, a bolt splits them into words, another one counts these. One word
// is lost: its sentence fails by time-out, and is emitted again.
#include "timecache/recipes/acker.h"

#include <deque>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "client/examples/example.h"

namespace timecache::examples {
namespace {

constexpr absl::Duration kTtl = absl::Seconds(2);
constexpr const char* kSentences[] = {
    "the cow jumped over the moon", "an apple a day keeps the doctor away",
    "four score and seven years ago", "snow white and the seven dwarfs"};
constexpr char kLostWord[] = "dwarfs";

// What is on its way to the next bolt.
struct Tuple {
  std::string root;
  uint64_t id = 0;
  std::string text;
};

class Topology {
 public:
  explicit Topology(const Client& client)
      : client_(client),
        acker_(client, "acker-example", {.ttl = kTtl}),
        watcher_(client, {.key_prefix = acker_.key_prefix()}) {}

  absl::Status Run() {
    if (absl::Status begun = Begin(watcher_); !begun.ok()) return begun;
    for (size_t i = 0; i < std::size(kSentences); ++i) {
      // Roots are not used again, by a later run neither.
      const std::string root =
          std::to_string(Acker::NewId()) + " " + std::to_string(i + 1);
      if (auto emitted = Emit(root, kSentences[i]); !emitted.ok()) {
        return emitted;
      }
    }
    while (!pending_.empty()) {
      if (auto processed = Process(); !processed.ok()) return processed;
      if (pending_.empty()) break;
      if (auto passed = Time(client_).Pass(kTtl + absl::Seconds(1));
          !passed.ok()) {
        return passed;
      }
      if (auto replayed = Replay(); !replayed.ok()) return replayed;
    }
    std::cout << counts_["the"] << " x the, " << counts_["seven"]
              << " x seven (words of a sentence that is emitted again count "
                 "again)"
              << std::endl;
    return absl::OkStatus();
  }

 private:
  absl::Status Emit(const std::string& root, const std::string& sentence) {
    const Tuple tuple = {root, Acker::NewId(), sentence};
    pending_[root] = sentence;
    const auto done = acker_.Track(root, {tuple.id});
    if (!done.ok()) return done.status();
    sentences_.push_back(tuple);
    std::cout << "emitted\t" << sentence << std::endl;
    return absl::OkStatus();
  }

  // The two bolts, until nothing is on its way.
  absl::Status Process() {
    for (; !sentences_.empty(); sentences_.pop_front()) {
      const Tuple& sentence = sentences_.front();
      std::istringstream words(sentence.text);
      std::vector<uint64_t> emitted;
      for (std::string word; words >> word;) {
        emitted.push_back(Acker::NewId());
        words_.push_back({sentence.root, emitted.back(), word});
      }
      auto acked = Ack(sentence, emitted);
      if (!acked.ok()) return acked;
    }
    for (; !words_.empty(); words_.pop_front()) {
      const Tuple& word = words_.front();
      if (word.text == kLostWord && !std::exchange(lost_, true)) continue;
      ++counts_[word.text];
      if (auto acked = Ack(word, {}); !acked.ok()) return acked;
    }
    return absl::OkStatus();
  }

  absl::Status Ack(const Tuple& tuple, const std::vector<uint64_t>& emitted) {
    const auto done = acker_.Ack(tuple.root, tuple.id, emitted);
    if (!done.ok()) return done.status();
    if (!*done) return absl::OkStatus();
    std::cout << "done\t" << pending_[tuple.root] << std::endl;
    pending_.erase(tuple.root);
    return absl::OkStatus();
  }

  // Emits under a new root what has failed.
  absl::Status Replay() {
    const auto batch = watcher_.Next(absl::Seconds(30));
    if (!batch.ok()) return batch.status();
    for (const ExpiredEvent& event : batch->events) {
      const auto root = acker_.FailedRoot(event);
      if (!root || !pending_.contains(*root)) continue;
      const std::string sentence = pending_[*root];
      pending_.erase(*root);
      std::cout << "failed\t" << sentence << std::endl;
      auto emitted = Emit(*root + "'", sentence);
      if (!emitted.ok()) return emitted;
    }
    return absl::OkStatus();
  }

  const Client client_;
  const Acker acker_;
  Watcher watcher_;
  std::map<std::string, std::string> pending_;  // Sentences by root.
  std::deque<Tuple> sentences_;
  std::deque<Tuple> words_;
  std::map<std::string, int> counts_;
  bool lost_ = false;
};

int Main(int argc, char** argv) {
  std::string address = "127.0.0.1:7171";
  CLI::App app("Processes messages at least once, as Storm does", "acker");
  app.add_option("--address", address, "The server's address");
  CLI11_PARSE(app, argc, argv);
  return Exit("acker", Topology(Client(address)).Run());
}

}  // namespace
}  // namespace timecache::examples

int main(int argc, char** argv) {
  return timecache::examples::Main(argc, argv);
}

// Brokers and nodes that a test starts, breaks and asks.

#ifndef TIMECACHED_TESTS_CHAOS_TEST_CLUSTER_H_
#define TIMECACHED_TESTS_CHAOS_TEST_CLUSTER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/chaos/processes.h"
#include "tests/support/await.h"
#include "tests/support/engine/dice.h"
#include "tests/support/journal/temporary_directory.h"
#include "timecache/client.h"

namespace timecache::test {

// Await, as long as brokers on a busy machine may take to elect leaders anew.
inline bool AwaitCluster(absl::FunctionRef<bool()> condition) {
  return Await(condition, absl::Minutes(3));
}

// Calls until a call succeeds, or AwaitCluster gives up, and returns the last answer. An
// owner on a busy machine may lose the ownership at any time, and with it calls of
// which nobody knows whether they are applied: `call` may be applied twice.
template <typename Call>
auto CallUntilOk(Call call) {
  auto answer = call();
  if (!answer.ok()) {
    AwaitCluster([&] {
      answer = call();
      return answer.ok();
    });
  }
  return answer;
}

// The same of what creates something: it is there also where an earlier call has been
// applied.
template <typename Create>
absl::Status CreateUntilOk(Create create) {
  return CallUntilOk([&] {
    const absl::Status status = create().status();
    return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
  });
}

struct TestClusterOptions {
  int nodes = 3;
  // So many of the nodes are started, the first ones; -1: all.
  int started = -1;
  int brokers = 3;
  // Of broker 1, once MayMount; 0: it has the machine's, as the others have.
  int small_disk_mib = 0;
  // A line for brokers.py, before topics are made: "create test.journal ...".
  std::string prepare;
  // Topics may be such that they lose writes. One broker's are.
  bool allow_unsafe = false;
  // How far the clock of node i is from the brokers'; those after the last: not.
  std::vector<absl::Duration> clocks;
  // Nodes reach each other by links that can be cut: see TestCluster::PeersOf.
  bool link_nodes = false;
  // Of a node's configuration file: "cluster: {...}"; empty: it has none.
  std::string config;
  // Called once the topics are made, before a node starts, with how to reach the
  // brokers. May be null.
  std::function<void(const std::string& brokers)> with_topics;
};

// Brokers, and the nodes node0, node1 and so on. Not thread-safe, but for
// addresses() and Caller().
class TestCluster {
 public:
  // Of a call that goes on until it is answered: all of a fault is over by then.
  static constexpr absl::Duration kPatience = absl::Seconds(60);
  // Of one that is safe to repeat: with the pauses between them, some ten seconds.
  static constexpr int kAttempts = 12;

  // Gives this thread, and what it starts, mounts of its own.
  static bool MayMount();

  // Returns when a node serves. TIMECACHED_CHAOS_DIRECTORY keeps logs
  // and data, in a directory PROCESS.NUMBER.
  explicit TestCluster(TestClusterOptions options = {});
  ~TestCluster();

  // `timecached cluster init`.
  void MakeTopics() const;
  // Its answer, of topics that are there.
  nlohmann::json Topics() const;
  // The directory of a broker's disk.
  std::string DataOf(int broker) const;
  // Where node0 reaches the brokers.
  std::string BrokersAddresses() const;

  Brokers& brokers() { return *brokers_; }
  // The name of the link by which others reach the node, for Brokers::Do.
  static std::string PeersOf(const std::string& node) {
    return node + ".peers";
  }
  Node& node(size_t i) { return *nodes_[i]; }
  size_t size() const { return nodes_.size(); }
  // Of all, `first` first.
  std::string addresses(size_t first = 0) const;

  // In the namespace; one that retries has kPatience, another one `impatience`. Each
  // begins with the node `first`, modulo their number.
  Client Caller(const std::string& ns, size_t first = 0) const;
  Client ImpatientCaller(const std::string& ns, absl::Duration impatience,
                         size_t first = 0) const;
  // Which knows this node alone, and others that it names.
  Client CallerOfOne(const std::string& ns, size_t node,
                     absl::Duration impatience) const;
  // One that nobody else creates.
  void Create(const std::string& name, const NamespaceOptions& options) const;

  // Where nodes share the ownership, the one that has most slots. Null: none says now
  // that it serves. On a busy machine one may be too slow to
  // say so, or lose the ownership to another.
  Node* Owner();
  // The one that serves, or soon does. Null: the test has failed.
  Node* AwaitOwner();
  // All but AwaitOwner().
  std::vector<Node*> Standbys();
  Node* Standby(Dice& dice);
  // Until all nodes that run have caught up: the next fault meets a whole cluster.
  void AwaitWhole() const;
  bool IsWhole() const;
  // What a node says, or all of them together; null: no answer.
  static nlohmann::json Status(const std::string& addresses);
  // Whether the last MiB of the node's log has it.
  static bool HasLogged(const Node& node, const std::string& text);
  // The last words of nodes that have ended by themselves; empty: all run.
  std::string WhyNodesEnded() const;
  // As their machines would: what their last words were.
  std::string StartEndedNodes();

 private:
  static std::string WhyEnded(const Node& node);
  bool allow_unsafe() const {
    return options_.allow_unsafe || options_.brokers == 1;
  }
  std::vector<std::string> InitArguments() const;
  std::map<std::string, std::string> ClockOf(size_t node) const;

  const TestClusterOptions options_;
  server::TemporaryDirectory temporary_;
  const std::string directory_;
  std::unique_ptr<Brokers> brokers_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_CHAOS_TEST_CLUSTER_H_

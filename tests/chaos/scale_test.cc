// Nodes join and leave under load, as pods that are scaled and updated: nothing fails
// that a client does not repeat by itself.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/engine/dice.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

constexpr size_t kLeastNodes = 2;
constexpr size_t kMostNodes = 5;
constexpr int kPatientCallers = 3;
constexpr int kImpatientCallers = 2;
constexpr int kKeysOfCaller = 50;
constexpr uint32_t kScalePartitions = 16;
// Of each caller, between two changes of the cluster.
constexpr uint64_t kCallsBetween = 20;
const absl::Duration kMinReady = absl::Seconds(2);
const absl::Duration kScaleImpatience = absl::Seconds(3);
// As pods have it: load balancers notice meanwhile.
constexpr char kConfig[] =
    "cluster: {forward_calls: true}\n"
    "drain_delay: 1s\n";

// Puts and gets keys that are this caller's alone, beginning with a node by chance.
class ScaleCaller {
 public:
  // A patient one repeats what fails, any other one says what it was.
  ScaleCaller(const TestCluster& cluster, int number, bool patient)
      : number_(number),
        patient_(patient),
        dice_(static_cast<uint64_t>(number) + 1),
        client_(patient ? cluster.Caller("kept", FirstNode())
                        : cluster.ImpatientCaller("kept", kScaleImpatience,
                                                  FirstNode())) {
    // Nobody else writes its keys.
    repeated_.repeatable = patient;
    thread_ = std::thread([this] { Run(); });
  }
  void Stop() {
    done_ = true;
    thread_.join();
  }

  uint64_t answered() const { return answered_; }
  uint64_t failed() const { return failed_; }
  absl::Duration longest() const { return longest_; }

  // After Stop: all that was acknowledged.
  void ExpectKept(const Client& client) const {
    for (const auto& [key, values] : may_be_) ExpectOne(client, key, values);
  }

 private:
  // What a key may be: what was acknowledged last, and what came later and may or may
  // not be applied.
  using Values = std::vector<std::string>;

  size_t FirstNode() { return dice_.Index(kMostNodes); }
  void Run() {
    for (uint64_t call = 0; !done_; ++call) {
      const std::string key =
          absl::StrCat("c", number_, "-", dice_.Draw(1, kKeysOfCaller));
      const absl::Time began = absl::Now();
      if (call % 2 == 0) {
        Put(key, absl::StrCat(call));
      } else {
        Get(key);
      }
      longest_ = std::max(longest_, absl::Now() - began);
    }
  }
  void Put(const std::string& key, const std::string& value) {
    const auto put = client_.Put(key, value, {}, repeated_);
    if (Count(put.status())) {
      may_be_[key] = {value};
    } else {
      Values& values = may_be_[key];
      if (values.empty()) values.emplace_back();
      values.push_back(value);
    }
  }
  void Get(const std::string& key) {
    const auto got = client_.Get(key);
    const auto values = may_be_.find(key);
    if (!Count(got.status()) || values == may_be_.end()) return;
    const std::string is = *got ? (*got)->value : "";
    EXPECT_NE(std::find(values->second.begin(), values->second.end(), is),
              values->second.end())
        << key << " is " << is << ", not " << values->second.front();
  }
  // Whether it succeeded.
  bool Count(const absl::Status& status) {
    if (status.ok()) {
      ++answered_;
      return true;
    }
    ++failed_;
    // Its own impatience may be too short for a busy machine.
    EXPECT_TRUE(!patient_ && (absl::IsUnavailable(status) ||
                              absl::IsDeadlineExceeded(status)))
        << status;
    return false;
  }
  static void ExpectOne(const Client& client, const std::string& key,
                        const Values& values) {
    const auto entry = client.Get(key);
    ASSERT_TRUE(entry.ok()) << entry.status();
    const std::string is = *entry ? (*entry)->value : "";
    EXPECT_NE(std::find(values.begin(), values.end(), is), values.end())
        << key << " is " << is << ", not " << values.front();
  }

  const int number_;
  const bool patient_;
  Dice dice_;
  const Client client_;
  CallOptions repeated_;
  std::map<std::string, Values> may_be_;
  absl::Duration longest_;
  std::atomic<uint64_t> answered_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

class ScaleTest : public ::testing::Test {
 protected:
  ScaleTest() : cluster_(Options()) {
    NamespaceOptions kept;
    kept.num_partitions = kScalePartitions;
    kept.durability = Durability::kReplicated;
    kept.ttl = absl::Hours(1);
    cluster_.Create("kept", kept);
    for (int i = 0; i < kPatientCallers + kImpatientCallers; ++i) {
      callers_.push_back(
          std::make_unique<ScaleCaller>(cluster_, i, i < kPatientCallers));
    }
  }

  static TestClusterOptions Options() {
    TestClusterOptions options;
    options.brokers = 1;
    options.nodes = kMostNodes;
    options.started = kLeastNodes;
    options.config = kConfig;
    return options;
  }

  // Calls of all callers succeed that began after this.
  void AwaitCalls() {
    std::vector<uint64_t> before;
    for (const auto& caller : callers_) before.push_back(caller->answered());
    EXPECT_TRUE(AwaitCluster([&] {
      for (size_t i = 0; i < callers_.size(); ++i) {
        if (callers_[i]->answered() < before[i] + kCallsBetween) return false;
      }
      return true;
    }));
  }
  // Until the node is available, by what probes ask and the chart's minReadySeconds.
  void Join(size_t node) {
    cluster_.node(node).Start();
    const Client probe =
        cluster_.CallerOfOne("default", node, kScaleImpatience);
    EXPECT_TRUE(AwaitCluster([&] {
      const auto health = probe.CheckHealth();
      return health.ok() && *health == ServingStatus::kServing;
    }));
    const absl::Time ready = absl::Now();
    EXPECT_TRUE(AwaitCluster([&] { return absl::Now() >= ready + kMinReady; }));
    AwaitCalls();
  }
  void Leave(size_t node) {
    EXPECT_EQ(cluster_.node(node).Stop(), 0);
    AwaitCalls();
  }
  // All from this one on, at the same time.
  void LeaveFrom(size_t first) {
    std::vector<std::thread> stops;
    for (size_t node = first; node < kMostNodes; ++node) {
      stops.emplace_back(
          [this, node] { EXPECT_EQ(cluster_.node(node).Stop(), 0); });
    }
    for (std::thread& stop : stops) stop.join();
    AwaitCalls();
  }
  void StopCallers() {
    for (const auto& caller : callers_) caller->Stop();
    for (const auto& caller : callers_) {
      caller->ExpectKept(cluster_.Caller("kept"));
      std::fprintf(
          stderr, "%d calls answered, %d failed, the longest took %d ms\n",
          static_cast<int>(caller->answered()),
          static_cast<int>(caller->failed()),
          static_cast<int>(absl::ToInt64Milliseconds(caller->longest())));
    }
  }

  TestCluster cluster_;
  std::vector<std::unique_ptr<ScaleCaller>> callers_;
};

TEST_F(ScaleTest, NodesComeAndGoUnderLoadAndNoCallerSeesIt) {
  AwaitCalls();
  for (size_t node = kLeastNodes; node < kMostNodes; ++node) Join(node);
  // Pods are taken away together, with the slots that they own.
  EXPECT_GT(cluster_.node(kMostNodes - 1).ServedSlots(), 0u);
  LeaveFrom(kLeastNodes);
  // A rolling update begins with the last one.
  for (size_t node = kLeastNodes; node-- > 0;) {
    Leave(node);
    Join(node);
  }
  StopCallers();
}

}  // namespace
}  // namespace timecache::test

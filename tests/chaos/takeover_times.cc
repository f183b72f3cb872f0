// For how long a caller waits when the owner changes, with many entries and warm
// standbys. Prints figures; ctest does not run it:
//
//   takeover_times [--gtest_filter=...]   TIMECACHED_ENTRIES (1,000,000)
//                                         TIMECACHED_TAKEOVERS (10) of each kind
//                                         TIMECACHED_CHAOS_ONLY (all four), a kind
//                                         TIMECACHED_SHARED, if it is set: nodes share
//                                         the ownership, and one slot has all entries

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/chaos/faults.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "tests/support/engine/dice.h"
#include "tests/support/process.h"
#include "timecache/batch.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

constexpr int kFillers = 2;
constexpr uint64_t kBatch = 500;
constexpr size_t kValueBytes = 100;
const absl::Duration kPause = absl::Milliseconds(2);

uint64_t Count(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::stoull(text) : otherwise;
}

std::string Load() {
  std::string line;
  std::getline(std::ifstream("/proc/loadavg"), line);
  return line;
}

bool Shares() { return std::getenv("TIMECACHED_SHARED") != nullptr; }

TestClusterOptions TwoNodes() {
  TestClusterOptions options;
  options.nodes = 2;
  if (Shares()) {
    options.config = "cluster: {forward_calls: true}\n";
  }
  return options;
}

class TakeoverTimes : public ::testing::Test {
 protected:
  TakeoverTimes() {
    NamespaceOptions options;
    options.durability = Durability::kReplicated;
    options.ttl = absl::Hours(24);
    cluster_.Create("kept", options);
    const absl::Time began = absl::Now();
    std::vector<std::thread> fillers;
    for (uint64_t filler = 0; filler < kFillers; ++filler) {
      fillers.emplace_back([this, filler] { Fill(filler); });
    }
    for (std::thread& filler : fillers) filler.join();
    std::fprintf(stderr, "%d entries in %.1f s, load %s\n",
                 static_cast<int>(entries_),
                 absl::ToDoubleSeconds(absl::Now() - began), Load().c_str());
    cluster_.AwaitWhole();
    caller_ = std::thread([this] { Call(); });
  }
  ~TakeoverTimes() override {
    done_ = true;
    caller_.join();
  }

  void Fill(uint64_t filler) {
    const Client client = cluster_.Caller("kept");
    const std::string value(kValueBytes, 'v');
    for (uint64_t i = filler * kBatch; i < entries_; i += kFillers * kBatch) {
      Batch batch;
      for (uint64_t key = i; key < std::min(i + kBatch, entries_); ++key) {
        batch.Add(Operation::Put(absl::StrCat("key", key), value));
      }
      const auto results = client.Execute(batch);
      ASSERT_TRUE(results.ok()) << results.status();
    }
  }
  // Repeats a call that failed, at once: the client does that only where it cannot
  // have been applied.
  void Call() {
    const Client client = cluster_.Caller("kept");
    absl::Time began = absl::Now();
    for (uint64_t i = 0; !done_; ++i) {
      const auto put = client.Put(absl::StrCat("key", i % entries_), "v");
      if (!put.ok()) {
        if (++failed_ == 1) {
          std::fprintf(stderr, "the first call that failed: %s\n",
                       put.status().ToString().c_str());
        }
        continue;
      }
      longest_us_ = std::max(longest_us_.load(),
                             absl::ToInt64Microseconds(absl::Now() - began));
      ++calls_;
      absl::SleepFor(kPause);
      began = absl::Now();
    }
  }
  static void HandOverFrom(const Node& node) {
    EXPECT_TRUE(AwaitCluster([&] {
      return RunToEnd({TIMECACHECTL, "--address", node.address(), "cluster",
                       "handover"})
                 .code == 0;
    }));
  }
  void Measure(const std::string& name) {
    const Fault fault = FaultsNamed(name).front();
    Dice dice(1);
    std::vector<int64_t> waits_ms;
    for (uint64_t i = 0; i < Count("TIMECACHED_TAKEOVERS", 10); ++i) {
      cluster_.AwaitWhole();
      longest_us_ = 0;
      // Of slots, whichever node has the one with the entries hands it over.
      for (size_t node = 0; Shares() && node < cluster_.size(); ++node) {
        HandOverFrom(cluster_.node(node));
      }
      fault.befall(cluster_, dice, [this] {
        const uint64_t from = calls_;
        EXPECT_TRUE(AwaitCluster([&] { return calls_ > from + 10; }));
      });
      waits_ms.push_back(longest_us_ / 1'000);
    }
    std::sort(waits_ms.begin(), waits_ms.end());
    const auto at = [&](size_t percent) {
      return static_cast<int>(waits_ms[std::min(waits_ms.size() * percent / 100,
                                                waits_ms.size() - 1)]);
    };
    std::fprintf(stderr,
                 "%s: a caller waited %d ms (p50), %d ms (p90), %d ms (most), "
                 "of %d; %d calls failed; load %s\n",
                 name.c_str(), at(50), at(90), at(100),
                 static_cast<int>(waits_ms.size()),
                 static_cast<int>(failed_.exchange(0)), Load().c_str());
  }

  const uint64_t entries_ = Count("TIMECACHED_ENTRIES", 1'000'000);
  TestCluster cluster_{TwoNodes()};
  std::thread caller_;
  std::atomic<bool> done_{false};
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<int64_t> longest_us_{0};
};

TEST_F(TakeoverTimes, OfManyEntries) {
  const char* const only = std::getenv("TIMECACHED_CHAOS_ONLY");
  for (const char* const name :
       {"handed over", "standby killed", "owner killed", "broker killed"}) {
    if (only == nullptr || std::string(only) == name) Measure(name);
  }
}

}  // namespace
}  // namespace timecache::test

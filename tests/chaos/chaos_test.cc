// A cluster of three nodes and three brokers, of which some are killed, paused
// and cut off at random moments, while clients write, read, watch and settle;
// each keeps an account of its own of what it was answered.
//
// TIMECACHED_CHAOS_ROUNDS says how many faults there are (16), TIMECACHED_SEED
// what chance does, TIMECACHED_CHAOS_ONLY which faults alone, divided by commas,
// TIMECACHED_CHAOS_READS what cluster.reads is. It prints how long callers waited, by
// fault.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/chaos/faults.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "tests/support/engine/dice.h"
#include "tests/support/key_history.h"
#include "timecache/batch.h"
#include "timecache/client.h"
#include "timecache/settle.h"
#include "timecache/status.h"
#include "timecache/watcher.h"

namespace timecache::test {
namespace {

constexpr int kWriters = 2;
constexpr int kKeysOfWriter = 100;
// Of so many batches, the key that is written once is looked at again.
constexpr uint64_t kOnceKept = 64;
constexpr uint64_t kReaders = 4;
constexpr int kSharedKeys = 6;
constexpr int kDefaultRounds = 16;
constexpr int kClockRounds = 5;
constexpr uint32_t kPartitions = 16;
const absl::Duration kTtl = absl::Seconds(3);
// What the slew of the server's clock may take of it.
constexpr double kLeastOfTtl = 0.985;
// Of a read that is repeated: short, so that it begins after a takeover.
const absl::Duration kGlance = absl::Milliseconds(100);
// Of a call that is not repeated: a node that hangs shows in no other way.
const absl::Duration kImpatience = absl::Seconds(3);

// How a control run is known: see CMakeLists.txt.
constexpr char kInconsistent[] = "inconsistent: ";

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::stoull(text) : otherwise;
}

int64_t MillisOf(absl::Duration duration) {
  return absl::ToInt64Milliseconds(duration);
}

// By key.
using Histories = std::map<std::string, std::vector<HistoryEntry>>;

class ChaosTest : public ::testing::Test {
 protected:
  // To be called first.
  void Start(const TestClusterOptions& options, uint32_t num_partitions = 1) {
    cluster_ = std::make_unique<TestCluster>(options);
    NamespaceOptions ns;
    ns.num_partitions = num_partitions;
    ns.durability = Durability::kReplicated;
    ns.ttl = absl::Hours(1);
    cluster_->Create("kept", ns);
    ns.ttl = kTtl;
    ns.num_buckets = 4;
    ns.event_retention = absl::Minutes(30);
    cluster_->Create("dies", ns);
    GroupOptions group;
    group.ack_timeout = absl::Seconds(30);
    group.max_attempts = 100;
    const Client client = cluster_->Caller("dies");
    const absl::Status workers = CreateUntilOk([&] {
      return client.CreateGroup("workers", group, WatchStart::kEarliest);
    });
    EXPECT_TRUE(workers.ok()) << workers;
  }

  Client Caller(const std::string& ns, bool retries = true) const {
    const size_t first = callers_spread_ ? next_node_++ : 0;
    return retries ? cluster_->Caller(ns, first)
                   : cluster_->ImpatientCaller(ns, kImpatience, first);
  }

  // --- Who calls.

  // Keys that nobody else writes: each is as was answered last, or, where a call
  // failed, as it may have become.
  void Write(int writer, uint64_t seed) {
    const Client client = Caller("kept", /*retries=*/false);
    Dice dice(seed);
    std::map<std::string, std::string> known;
    uint64_t checked = round_;
    absl::Time served = absl::Now();
    for (uint64_t number = 0; !done_; ++number) {
      if (const uint64_t round = round_; round != checked) {
        for (const auto& [key, value] : known) Check(client, key, {value});
        checked = round;
        ++writers_checked_;
        served = absl::Now();
      }
      Batch batch;
      std::map<std::string, std::string> sent;
      for (int i = 0; i < 10; ++i) {
        const std::string key =
            absl::StrCat("w", writer, "-", dice.Draw(1, kKeysOfWriter));
        const std::string value = absl::StrCat(number);
        if (!sent.emplace(key, value).second) continue;
        batch.Add(Operation::Put(key, value));
      }
      // Nobody writes it again: where the batch fails, and is stored later, that
      // shows at any time.
      const std::string once = absl::StrCat("w", writer, "-once-", number);
      sent.emplace(once, "once");
      batch.Add(Operation::Put(once, "once"));
      const auto results = client.Execute(batch);
      const auto all_ok = [&] {
        return std::all_of(results->begin(), results->end(),
                           [](const auto& each) { return each.status.ok(); });
      };
      if (results.ok() && all_ok()) {
        ++batches_;
        const absl::Time now = absl::Now();
        NoteWait(now - std::exchange(served, now));
        acknowledged_ += sent.size();
        if (number % kOnceKept != 0) sent.erase(once);
        for (auto& [key, value] : sent) known[key] = value;
        continue;
      }
      ++failed_;
      // Put or not: also the parts that were answered differ by their shards'
      // records.
      for (auto& [key, value] : sent) {
        const auto before = known.find(key);
        known[key] =
            Check(client, key,
                  {value, before == known.end() ? "(none)" : before->second});
      }
    }
  }
  std::string Check(const Client& client, const std::string& key,
                    const std::set<std::string>& may_be) {
    std::string is;
    const bool answered = AwaitCluster([&] {
      const auto entry = client.Get(key);
      if (entry.ok()) is = *entry ? (*entry)->value : "(none)";
      return entry.ok() || done_;
    });
    EXPECT_TRUE(!answered || done_ || may_be.count(is) > 0)
        << kInconsistent << key << " is " << is << ", not " << *may_be.begin();
    return is;
  }

  // Keys that all of them use: each key's history is linearizable.
  void Use(uint64_t round, uint64_t seed, Histories* histories) {
    const Client client = Caller("kept", /*retries=*/false);
    Dice dice(seed);
    while (!round_over_) {
      const std::string key =
          absl::StrCat("r", round, "-", dice.Draw(1, kSharedKeys));
      HistoryEntry entry;
      entry.called_at = ++moment_;
      absl::Status status;
      switch (dice.Draw(0, 3)) {
        case 0: {
          entry.kind = HistoryKind::kPut;
          entry.value = absl::StrCat(dice.Draw(1, 1'000'000));
          const auto put = client.Put(key, entry.value);
          if (put.ok()) entry.version = put->version;
          status = put.status();
          break;
        }
        case 1: {
          entry.kind = HistoryKind::kAppend;
          entry.value = "3";
          const auto appended = client.Append(key, entry.value);
          if (appended.ok()) {
            entry.found = !appended->created;
            entry.version = appended->version;
            entry.result = static_cast<int64_t>(appended->value_bytes);
          }
          status = appended.status();
          break;
        }
        default: {
          entry.kind = HistoryKind::kGet;
          const auto got = client.Get(key);
          if (got.ok() && *got) {
            entry.found = true;
            entry.got = (*got)->value;
            entry.version = (*got)->version;
          }
          status = got.status();
        }
      }
      if (status.ok()) {
        entry.answered_at = ++moment_;
        ++answered_;
      } else if (entry.kind == HistoryKind::kGet) {
        continue;
      }
      absl::MutexLock lock(&mu_);
      (*histories)[key].push_back(entry);
      // Few enough for the checker; more when all goes well would show nothing.
      if ((*histories)[key].size() > 2'000) return;
    }
  }

  // Reads them from one node, and from the owner that it names: it stays with a
  // former owner that does not answer.
  void ReadOne(uint64_t round, size_t node, uint64_t seed,
               Histories* histories) {
    const Client client = cluster_->CallerOfOne("kept", node, kGlance);
    Dice dice(seed);
    while (!round_over_) {
      const std::string key =
          absl::StrCat("r", round, "-", dice.Draw(1, kSharedKeys));
      HistoryEntry entry;
      entry.kind = HistoryKind::kGet;
      entry.called_at = ++moment_;
      const auto got = client.Get(key);
      if (!got.ok()) continue;
      entry.answered_at = ++moment_;
      if (*got) {
        entry.found = true;
        entry.got = (*got)->value;
        entry.version = (*got)->version;
      }
      ++answered_;
      absl::MutexLock lock(&mu_);
      (*histories)[key].push_back(entry);
      mu_.AwaitWithTimeout(absl::Condition(&feeding_ends_),
                           absl::Milliseconds(5));
    }
  }

  // Keys that are put once, and die.
  void Feed() {
    const Client client = Caller("dies", /*retries=*/false);
    for (uint64_t number = 0; !done_; ++number) {
      const absl::Time sent = absl::Now();
      const std::string key = absl::StrCat("d", number);
      const auto put = client.Put(key, "v");
      if (put.ok()) {
        absl::MutexLock lock(&mu_);
        put_.emplace(key, sent);
      }
      // Some hundred a second are enough.
      absl::MutexLock lock(&mu_);
      mu_.AwaitWithTimeout(absl::Condition(&feeding_ends_),
                           absl::Milliseconds(5));
    }
  }

  void Watch() {
    WatchOptions options;
    options.start = WatchStart::kEarliest;
    options.wait_for_server = true;
    options.max_pause = absl::Milliseconds(200);
    watcher_ = std::make_unique<Watcher>(Caller("dies"), options);
    watching_.Notify();
    for (;;) {
      const auto batch = watcher_->Next();
      if (!batch.ok()) {
        EXPECT_TRUE(absl::IsCancelled(batch.status())) << batch.status();
        return;
      }
      const absl::Time now = absl::Now();
      absl::MutexLock lock(&mu_);
      lost_ += batch->lost;
      EXPECT_FALSE(batch->log_changed);
      for (const ExpiredEvent& event : batch->events) {
        EXPECT_TRUE(died_.emplace(event.key, now).second)
            << event.key << " died twice";
      }
    }
  }

  void Work() {
    const Client client = Caller("dies");
    WatchOptions options;
    options.group = "workers";
    options.wait_for_server = true;
    options.max_pause = absl::Milliseconds(200);
    worker_ = std::make_unique<Watcher>(client, options);
    working_.Notify();
    for (;;) {
      const auto batch = worker_->Next();
      if (!batch.ok()) {
        EXPECT_TRUE(absl::IsCancelled(batch.status())) << batch.status();
        return;
      }
      std::vector<Settlement> settlements;
      {
        absl::MutexLock lock(&mu_);
        EXPECT_EQ(batch->lost, 0u);
        for (const ExpiredEvent& event : batch->events) {
          EXPECT_EQ(settled_.count(event.key), 0u)
              << event.key << " was settled, and comes again";
          settlements.push_back({event.delivery_token, Settle::Ack()});
        }
      }
      if (settlements.empty()) continue;
      const auto results = client.Settle("workers", settlements);
      absl::MutexLock lock(&mu_);
      for (size_t i = 0; i < settlements.size(); ++i) {
        const std::string& key = batch->events[i].key;
        if (results.ok() && (*results)[i].status.ok()) {
          settled_.insert(key);
        } else {
          maybe_settled_.insert(key);
        }
      }
    }
  }

  // From one call that succeeded to the next.
  void NoteWait(absl::Duration wait) {
    absl::MutexLock lock(&mu_);
    longest_wait_ = std::max(longest_wait_, wait);
  }

  // --- What befalls them.

  // The faults in their order, then by chance.
  void Run(const std::vector<Fault>& faults, uint64_t rounds);
  void RunRound(uint64_t round, const Fault& fault, uint64_t seed, Dice& dice);
  // All that was put dies, and is told or counted lost.
  void AwaitDeaths();
  void CheckDeaths();
  void PrintFigures();

  // Calls succeed that began after this.
  void AwaitService() {
    const uint64_t from = batches_;
    AwaitWhileNodesRun([&] { return batches_ >= from + 5 * kWriters; });
  }
  // A node that ends by itself says why: it is what its journal cannot be.
  void AwaitWhileNodesRun(absl::FunctionRef<bool()> condition) {
    std::string why;
    EXPECT_TRUE(AwaitCluster([&] {
      why = cluster_->WhyNodesEnded();
      return !why.empty() || condition();
    }));
    EXPECT_EQ(why, "") << kInconsistent << why;
  }

  std::unique_ptr<TestCluster> cluster_;
  // Whether callers begin with different nodes.
  bool callers_spread_ = false;
  mutable std::atomic<size_t> next_node_{0};

  std::atomic<bool> done_{false};
  std::atomic<bool> round_over_{false};
  std::atomic<uint64_t> round_{0};
  std::atomic<uint64_t> writers_checked_{0};
  std::atomic<uint64_t> batches_{0};
  std::atomic<uint64_t> failed_{0};
  std::atomic<uint64_t> acknowledged_{0};
  std::atomic<uint64_t> answered_{0};
  std::atomic<int64_t> moment_{0};
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<Watcher> worker_;
  absl::Notification watching_;
  absl::Notification working_;

  absl::Mutex mu_;
  bool feeding_ends_ ABSL_GUARDED_BY(mu_) = false;
  absl::Duration longest_wait_ ABSL_GUARDED_BY(mu_);
  // By fault, in milliseconds.
  std::map<std::string, std::vector<int64_t>> waits_ ABSL_GUARDED_BY(mu_);
  // By key, of which each is put once: when it was sent, and when its death arrived.
  std::map<std::string, absl::Time> put_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, absl::Time> died_ ABSL_GUARDED_BY(mu_);
  uint64_t lost_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<std::string> settled_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> maybe_settled_ ABSL_GUARDED_BY(mu_);
};

void ChaosTest::Run(const std::vector<Fault>& faults, uint64_t rounds) {
  const uint64_t seed = FromEnvironment("TIMECACHED_SEED", 20111204);
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", seed));
  Dice dice(seed);
  std::vector<std::thread> callers;
  for (int w = 0; w < kWriters; ++w) {
    callers.emplace_back(
        [this, w, seed] { Write(w, seed + static_cast<uint64_t>(w)); });
  }
  callers.emplace_back([this] { Feed(); });
  callers.emplace_back([this] { Watch(); });
  callers.emplace_back([this] { Work(); });
  watching_.WaitForNotification();
  working_.WaitForNotification();
  AwaitService();
  for (uint64_t round = 1; round <= rounds && !HasFailure(); ++round) {
    RunRound(
        round,
        faults[round <= faults.size() ? round - 1 : dice.Index(faults.size())],
        seed + round, dice);
  }
  done_ = true;
  {
    absl::MutexLock lock(&mu_);
    feeding_ends_ = true;
  }
  if (!HasFailure()) AwaitDeaths();
  watcher_->Cancel();
  worker_->Cancel();
  for (std::thread& caller : callers) caller.join();
  CheckDeaths();
  PrintFigures();
}

void ChaosTest::RunRound(uint64_t round, const Fault& fault, uint64_t seed,
                         Dice& dice) {
  SCOPED_TRACE(absl::StrCat("round ", round, ": ", fault.name));
  AwaitWhileNodesRun([&] { return cluster_->IsWhole(); });
  Histories histories;
  round_over_ = false;
  std::vector<std::thread> users;
  for (uint64_t u = 0; u < kReaders; ++u) {
    users.emplace_back([&, u] { Use(round, seed * kReaders + u, &histories); });
  }
  for (size_t node = 0; node < cluster_->size(); ++node) {
    users.emplace_back(
        [&, node] { ReadOne(round, node, seed + node, &histories); });
  }
  AwaitService();
  {
    absl::MutexLock lock(&mu_);
    longest_wait_ = absl::ZeroDuration();
  }
  fault.befall(*cluster_, dice, [this] { AwaitService(); });
  {
    absl::MutexLock lock(&mu_);
    waits_[fault.name].push_back(MillisOf(longest_wait_));
    std::fprintf(stderr, "round %d: %s: a caller waited %d ms\n",
                 static_cast<int>(round), fault.name,
                 static_cast<int>(waits_[fault.name].back()));
  }
  // What is let go again goes on for a while.
  AwaitService();
  round_over_ = true;
  for (std::thread& user : users) user.join();
  const uint64_t checked = writers_checked_;
  ++round_;
  AwaitWhileNodesRun([&] { return writers_checked_ == checked + kWriters; });
  for (auto& [key, history] : histories) {
    HistoryOptions options;
    options.ttl_us = int64_t{3'600'000'000};
    options.width_us = options.ttl_us / 100;
    const HistoryVerdict verdict = CheckHistory(history, options);
    EXPECT_NE(verdict.verdict, Verdict::kNotLinearizable)
        << kInconsistent << key << ": " << verdict.why;
    if (verdict.verdict == Verdict::kGaveUp) {
      std::fprintf(stderr, "%s: the checker gave up on %d calls\n", key.c_str(),
                   static_cast<int>(history.size()));
    }
  }
}

void ChaosTest::AwaitDeaths() {
  EXPECT_TRUE(AwaitCluster([&] {
    absl::MutexLock lock(&mu_);
    uint64_t missing = 0;
    for (const auto& [key, sent] : put_) missing += 1 - died_.count(key);
    return missing <= lost_;
  }));
  EXPECT_TRUE(AwaitCluster([&] {
    absl::MutexLock lock(&mu_);
    return std::all_of(died_.begin(), died_.end(), [&](const auto& death) {
      mu_.AssertHeld();
      return settled_.count(death.first) + maybe_settled_.count(death.first) >
             0;
    });
  }));
}

void ChaosTest::CheckDeaths() {
  absl::MutexLock lock(&mu_);
  for (const auto& [key, sent] : put_) {
    const auto died = died_.find(key);
    if (died == died_.end()) continue;
    EXPECT_GE(died->second - sent, kTtl * kLeastOfTtl)
        << kInconsistent << key << " died early";
  }
  EXPECT_EQ(lost_, 0u);
  EXPECT_FALSE(died_.empty());
}

void ChaosTest::PrintFigures() {
  absl::MutexLock lock(&mu_);
  std::fprintf(stderr,
               "%d writes acknowledged, %d batches failed, %d reads and writes "
               "of histories, %d deaths, %d lost\n",
               static_cast<int>(acknowledged_), static_cast<int>(failed_),
               static_cast<int>(answered_), static_cast<int>(died_.size()),
               static_cast<int>(lost_));
  for (auto& [what, all] : waits_) {
    std::sort(all.begin(), all.end());
    std::fprintf(stderr, "%s: waited %d ms (median), %d ms (most), of %d\n",
                 what.c_str(), static_cast<int>(all[all.size() / 2]),
                 static_cast<int>(all.back()), static_cast<int>(all.size()));
  }
}

TEST_F(ChaosTest, WhatWasAcknowledgedIsThereWhateverFails) {
  const char* const only = std::getenv("TIMECACHED_CHAOS_ONLY");
  const char* const reads = std::getenv("TIMECACHED_CHAOS_READS");
  TestClusterOptions options;
  if (reads != nullptr) {
    options.config = absl::StrCat("cluster: {reads: ", reads, "}\n");
  }
  Start(options);
  Run(only == nullptr ? AllFaults() : FaultsNamed(only),
      FromEnvironment("TIMECACHED_CHAOS_ROUNDS", kDefaultRounds));
}

// Takeovers by nodes whose clocks are behind, and ahead.
TEST_F(ChaosTest, NodesWhoseClocksAreApartLetNothingDieEarly) {
  TestClusterOptions options;
  options.clocks = {absl::Seconds(30), absl::ZeroDuration(),
                    absl::Seconds(-30)};
  options.config = "cluster: {max_clock_skew: 60s}\n";
  Start(options);
  Run(FaultsNamed("owner killed,handed over,owner paused,owner stopped,"
                  "owner and standby killed"),
      FromEnvironment("TIMECACHED_CHAOS_CLOCK_ROUNDS", kClockRounds));
}

// Each slot has an owner of its own; watchers, workers and writers are at any node.
TEST_F(ChaosTest, PartitionsAreWholeWhicheverNodeIsCalled) {
  TestClusterOptions options;
  options.config = "cluster: {forward_calls: true}\n";
  options.link_nodes = true;
  Start(options, kPartitions);
  callers_spread_ = true;
  const char* const only = std::getenv("TIMECACHED_CHAOS_ONLY");
  Run(only == nullptr ? SharedFaults() : FaultsNamed(only, SharedFaults()),
      FromEnvironment("TIMECACHED_CHAOS_SPREAD_ROUNDS", SharedFaults().size()));
}

}  // namespace
}  // namespace timecache::test

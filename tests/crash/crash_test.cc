// A server of durable namespaces is killed at random moments, while clients
// write, watch and settle events; each keeps an account of its own of what the
// server has answered. TIMECACHED_CRASHES says how often (25), TIMECACHED_SEED
// what chance does.

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/support/await.h"
#include "tests/support/engine/dice.h"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/server_process.h"
#include "timecache/batch.h"
#include "timecache/client.h"
#include "timecache/settle.h"
#include "timecache/virtual_clock.h"
#include "timecache/watcher.h"

namespace timecache::test {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::stoull(text) : otherwise;
}

// A server on one directory and one address, over all its lives.
class DurableServer {
 public:
  DurableServer() { Start("127.0.0.1:0"); }

  // As `kill -9` does.
  void Kill() {
    process_->process().Signal(SIGKILL);
    process_->process().Wait();
  }
  void Restart() { Start(address_); }
  // In good order.
  Exit Stop() {
    process_->process().Signal(SIGTERM);
    return process_->process().Wait();
  }
  const std::string& address() const { return address_; }

 private:
  void Start(const std::string& address) {
    process_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--listen", address, "--virtual-clock",
                                 "--journal", directory_.path() + "/journal"});
    address_ = process_->address();
  }

  server::TemporaryDirectory directory_;
  std::unique_ptr<ServerProcess> process_;
  std::string address_;
};

// What happened to the versions of one namespace, as its clients know it.
struct Account {
  // The last that was answered of a key; 0: a removal, or nothing.
  struct Key {
    uint64_t version = 0;
    std::string value;
    // An operation that was sent since, without an answer: the key is as
    // before it, or as after it.
    bool unanswered = false;
    std::string then;  // "(none)" after a removal
  };
  std::map<std::string, Key> keys;
  std::set<uint64_t> put;
  // Replaced or removed, or perhaps.
  std::set<uint64_t> ended;
};

constexpr int kWriters = 4;
constexpr int kKeys = 200;
constexpr int kBatch = 20;
const absl::Duration kTtl = absl::Seconds(5);

class CrashTest : public ::testing::TestWithParam<Durability> {
 protected:
  CrashTest() : client_(NewClient()) {
    NamespaceOptions options;
    options.ttl = kTtl;
    options.num_buckets = 6;
    options.event_retention = absl::Minutes(10);
    options.durability = GetParam();
    const auto created = admin_.CreateNamespace("crash", options);
    EXPECT_TRUE(created.ok()) << created.status();
  }

  Client NewClient() const { return Client(server_.address()).In("crash"); }

  void Write(int writer, uint64_t seed) {
    const Client client = NewClient();
    Account& mine = accounts_[static_cast<size_t>(writer)];
    Dice dice(seed);
    while (!stop_) {
      Batch batch;
      std::vector<std::string> keys;
      std::set<std::string> chosen;
      for (int i = 0; i < kBatch; ++i) {
        const std::string key = absl::StrCat(writer, "-", dice.Draw(1, kKeys));
        if (!chosen.insert(key).second) continue;
        const bool remove = dice.Chance(150);
        const std::string value(dice.Index(300), 'v');
        Account::Key& known = mine.keys[key];
        if (known.version != 0) mine.ended.insert(known.version);
        known.unanswered = true;
        known.then = remove ? "(none)" : value;
        batch.Add(remove ? Operation::Remove(key) : Operation::Put(key, value));
        keys.push_back(key);
      }
      const auto results = client.Execute(batch);
      // The server is gone: what became of these is seen later.
      if (!results.ok()) return;
      for (size_t i = 0; i < keys.size(); ++i) {
        const OperationResult& result = (*results)[i];
        ASSERT_TRUE(result.status.ok()) << result.status;
        Account::Key& known = mine.keys[keys[i]];
        known.version = result.version;
        known.value = std::exchange(known.then, "");
        known.unanswered = false;
        if (result.version != 0) mine.put.insert(result.version);
      }
      ++batches_;
    }
  }

  void Watch() {
    WatchOptions options;
    options.start = WatchStart::kEarliest;
    options.wait_for_server = true;
    options.max_pause = absl::Milliseconds(200);
    watcher_ = std::make_unique<Watcher>(client_, options);
    for (;;) {
      const auto batch = watcher_->Next();
      if (!batch.ok()) {
        EXPECT_TRUE(absl::IsCancelled(batch.status())) << batch.status();
        return;
      }
      absl::MutexLock lock(&mu_);
      EXPECT_EQ(batch->lost, 0u);
      EXPECT_FALSE(batch->log_changed);
      for (const ExpiredEvent& event : batch->events) {
        EXPECT_TRUE(told_.insert(event.version).second)
            << event.key << " died twice";
        EXPECT_GE(event.death_time, event.deadline) << event.key;
      }
      watermark_ = batch->watermark;
    }
  }

  // A member of a group that gets all events, settles them, and rejects some.
  void Work(uint64_t seed) {
    Dice dice(seed);
    const Client client = NewClient();
    WatchOptions options;
    options.group = "workers";
    options.start = WatchStart::kEarliest;
    options.wait_for_server = true;
    options.max_pause = absl::Milliseconds(200);
    worker_ = std::make_unique<Watcher>(client_, options);
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
          EXPECT_EQ(settled_.count(event.version), 0u)
              << event.key << " was settled, and comes again";
          settlements.push_back(
              {event.event_id, event.attempt,
               dice.Chance(100) ? Settle::Nack() : Settle::Ack()});
        }
      }
      if (settlements.empty()) continue;
      const auto results = client.Settle("workers", settlements);
      absl::MutexLock lock(&mu_);
      for (size_t i = 0; i < settlements.size(); ++i) {
        if (settlements[i].how.action != SettleAction::kAck) continue;
        const uint64_t version = batch->events[i].version;
        if (!results.ok()) {
          maybe_settled_.insert(version);
        } else if ((*results)[i].status.ok()) {
          settled_.insert(version);
        } else {
          // Given out again since, by a restart in between.
          EXPECT_GT(crashes_, 0u) << (*results)[i].status;
        }
      }
    }
  }

  // All events are settled, each once.
  void CheckSettled() {
    const auto unsettled = [this] {
      absl::MutexLock lock(&mu_);
      int count = 0;
      for (const uint64_t version : told_) {
        if (settled_.count(version) + maybe_settled_.count(version) == 0) {
          ++count;
        }
      }
      return count;
    };
    EXPECT_TRUE(Await([&] { return unsettled() == 0; })) << unsettled();
    DescribeOptions describe;
    describe.include_statistics = true;
    const auto group = client_.GetGroup("workers", describe);
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ(group->statistics->lost, 0u);
    absl::MutexLock lock(&mu_);
    EXPECT_GE(group->statistics->acked, settled_.size());
  }

  // Waits until the watcher has seen all that has died by now.
  void AwaitWatcher() {
    const absl::StatusOr<absl::Time> now =
        VirtualClock(client_).Advance(absl::Milliseconds(1));
    ASSERT_TRUE(now.ok()) << now.status();
    EXPECT_TRUE(Await([&] {
      absl::MutexLock lock(&mu_);
      return watermark_ >= *now;
    }));
  }

  // All keys are as their last answer said, or died, or are as an operation
  // without an answer makes them.
  void Check() {
    AwaitWatcher();
    for (Account& account : accounts_) {
      for (auto& [key, known] : account.keys) {
        const auto entry = client_.Get(key);
        ASSERT_TRUE(entry.ok()) << entry.status();
        const bool found = entry->has_value();
        const uint64_t version = found ? (*entry)->version : 0;
        const std::string value = found ? (*entry)->value : "(none)";
        const bool as_answered = version == known.version;
        const bool as_unanswered = known.unanswered && value == known.then;
        absl::MutexLock lock(&mu_);
        const bool died = !found && told_.count(known.version) > 0;
        EXPECT_TRUE(as_answered || as_unanswered || died)
            << key << " is " << value << ", version " << version
            << ", after version " << known.version;
        known = {version, value, false, ""};
      }
    }
  }

  DurableServer server_;
  Client admin_{server_.address()};
  Client client_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> batches_{0};
  std::array<Account, kWriters> accounts_;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<Watcher> worker_;
  absl::Notification working_;
  absl::Mutex mu_;
  // Versions whose settlement was answered, or sent.
  std::set<uint64_t> settled_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> maybe_settled_ ABSL_GUARDED_BY(mu_);
  uint64_t crashes_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<uint64_t> told_ ABSL_GUARDED_BY(mu_);
  absl::Time watermark_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

TEST_P(CrashTest, WhatWasAnsweredIsSoAfterEachKill) {
  const uint64_t seed = FromEnvironment("TIMECACHED_SEED", 20111204);
  const uint64_t crashes = FromEnvironment("TIMECACHED_CRASHES", 25);
  SCOPED_TRACE(absl::StrCat("TIMECACHED_SEED=", seed));
  Dice dice(seed);
  std::thread watch([this] { Watch(); });
  std::thread work([this, seed] { Work(seed); });
  working_.WaitForNotification();
  for (uint64_t crash = 0; crash < crashes && !HasFailure(); ++crash) {
    SCOPED_TRACE(absl::StrCat("crash ", crash));
    std::vector<std::thread> writers;
    for (int w = 0; w < kWriters; ++w) {
      writers.emplace_back([this, w, one = seed + crash * kWriters] {
        Write(w, one + static_cast<uint64_t>(w));
      });
    }
    const VirtualClock clock(client_);
    for (int64_t steps = dice.Draw(2, 8); steps > 0; --steps) {
      const uint64_t done = batches_ + 5;
      EXPECT_TRUE(Await([&] { return batches_ > done; }));
      EXPECT_TRUE(clock.Advance(absl::Milliseconds(dice.Draw(1, 800))).ok());
    }
    // Somewhere in the midst of a batch.
    server_.Kill();
    {
      absl::MutexLock lock(&mu_);
      ++crashes_;
    }
    for (std::thread& writer : writers) writer.join();
    server_.Restart();
    Check();
  }
  // All that was put is replaced, removed, or was told: nothing is forgotten.
  EXPECT_TRUE(VirtualClock(client_).Advance(10 * kTtl).ok());
  AwaitWatcher();
  CheckSettled();
  watcher_->Cancel();
  worker_->Cancel();
  watch.join();
  work.join();
  absl::MutexLock lock(&mu_);
  for (const Account& account : accounts_) {
    for (const uint64_t version : account.put) {
      EXPECT_TRUE(told_.count(version) + account.ended.count(version) > 0)
          << version << " is forgotten";
    }
  }
  EXPECT_GT(told_.size(), 10 * crashes);
  EXPECT_EQ(server_.Stop().code, 0);
}

INSTANTIATE_TEST_SUITE_P(Durabilities, CrashTest,
                         ::testing::Values(Durability::kAsync,
                                           Durability::kSync),
                         [](const auto& info) {
                           return info.param == Durability::kSync ? "Sync"
                                                                  : "Async";
                         });

}  // namespace
}  // namespace timecache::test

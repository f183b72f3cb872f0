// A server of durable namespaces is killed at random moments, while clients
// write, watch, settle events, put some back and give some up, and buckets are
// killed by hand; each keeps an account of its own of what the server has
// answered. TIMECACHED_CRASHES says how often (25), TIMECACHED_SEED what chance
// does.

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/crash/account.h"
#include "tests/crash/durable_server.h"
#include "tests/support/await.h"
#include "tests/support/engine/dice.h"
#include "timecache/batch.h"
#include "timecache/client.h"
#include "timecache/pipeline.h"
#include "timecache/settle.h"
#include "timecache/status.h"
#include "timecache/virtual_clock.h"
#include "timecache/watcher.h"

namespace timecache::test {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::stoull(text) : otherwise;
}

constexpr int kWriters = 4;
constexpr int kKeys = 200;
constexpr int kBatch = 20;
constexpr int kOrders = 5;
constexpr uint32_t kMaxAttempts = 3;
const absl::Duration kTtl = absl::Seconds(5);

// By the end of the stream, in whichever of gRPC's words; what a server says of an
// operation has a reason.
bool IsUnanswered(const absl::Status& status) {
  return !status.ok() && !ReasonName(status);
}

class CrashTest : public ::testing::TestWithParam<Durability> {
 protected:
  CrashTest() {
    NamespaceOptions options;
    options.ttl = kTtl;
    options.num_buckets = 6;
    options.event_retention = absl::Minutes(10);
    options.durability = GetParam();
    options.dead_letter_namespace = "letters";
    NamespaceOptions letters;
    letters.ttl = absl::Hours(1000);
    letters.durability = GetParam();
    const auto kept = admin_.CreateNamespace("letters", letters);
    EXPECT_TRUE(kept.ok()) << kept.status();
    const auto created = admin_.CreateNamespace("crash", options);
    EXPECT_TRUE(created.ok()) << created.status();
    GroupOptions group;
    group.max_attempts = kMaxAttempts;
    // No attempt ends by time: each by its member, or by a crash.
    group.ack_timeout = absl::Hours(24);
    const auto workers =
        client_.CreateGroup("workers", group, WatchStart::kEarliest);
    EXPECT_TRUE(workers.ok()) << workers.status();
  }

  // Calls end when their server is killed: a live one may be as slow as a busy
  // machine makes it.
  Client NewClient(const std::string& ns = "crash") const {
    ClientOptions options;
    options.timeout = kAwaitPatience;
    return Client(server_.address(), options).In(ns);
  }

  // A step of the clock, which writers know after it.
  void Advance(absl::Duration step) {
    const auto now = VirtualClock(client_).Advance(step);
    ASSERT_TRUE(now.ok()) << now.status();
    now_us_ = absl::ToUnixMicros(*now);
  }

  // What follows is not repeated where a client has not noticed yet that there is
  // another server, or does not get a connection at once.
  void AwaitConnections() const {
    for (const Client* client : {&client_, &admin_}) {
      EXPECT_TRUE(Await([&] { return client->GetServer().ok(); }));
    }
  }

  void Write(int writer, uint64_t seed) {
    const Client client = NewClient();
    Account& mine = accounts_[static_cast<size_t>(writer)];
    Dice dice(seed);
    for (;;) {
      Batch batch;
      std::vector<Sent> sent;
      std::set<std::string> chosen;
      for (int i = 0; i < kBatch; ++i) {
        const std::string key = absl::StrCat(writer, "-", dice.Draw(1, kKeys));
        if (!chosen.insert(key).second) continue;
        sent.push_back(mine.Draw(key, dice));
        batch.Add(sent.back().ToOperation());
      }
      const absl::Time sent_at = absl::FromUnixMicros(now_us_);
      const auto results = client.Execute(batch);
      // The server is gone: what became of these is seen later.
      if (!results.ok()) return;
      for (size_t i = 0; i < sent.size(); ++i) {
        mine.Enter(sent[i], (*results)[i], sent_at + kTtl);
      }
      ++batches_;
    }
  }

  // The same with several requests at a time on one stream.
  void WriteAhead(int writer, uint64_t seed) {
    const Client client = NewClient();
    Account& mine = accounts_[static_cast<size_t>(writer)];
    Dice dice(seed);
    absl::Mutex mu;
    // Keys with an operation that has no answer yet.
    std::set<std::string> sent_keys;
    uint64_t answers = 0;
    PipelineOptions options;
    options.batch_operations_max = kBatch;
    options.operations_in_flight_max = size_t{5} * kBatch;
    Pipeline pipeline(client, options);
    for (;;) {
      const std::string key = absl::StrCat(writer, "-", dice.Draw(1, kKeys));
      Sent sent;
      {
        absl::MutexLock lock(&mu);
        if (!sent_keys.insert(key).second) continue;
        sent = mine.Draw(key, dice);
      }
      const absl::Time sent_at = absl::FromUnixMicros(now_us_);
      const absl::Status added =
          pipeline.Add(sent.ToOperation(),
                       [&, sent, sent_at](const OperationResult& result) {
                         // No answer: it may be done, so that the account is
                         // not to forget it by a further operation.
                         if (IsUnanswered(result.status)) return;
                         absl::MutexLock lock(&mu);
                         sent_keys.erase(sent.key);
                         mine.Enter(sent, result, sent_at + kTtl);
                         if (++answers % kBatch == 0) ++batches_;
                       });
      if (!added.ok()) return;
    }
  }

  // Keys that no writer has: the member of the group puts them back once.
  void PutOrders(uint64_t crash) {
    for (int i = 0; i < kOrders; ++i) {
      const auto put = client_.Put(absl::StrCat("order-", crash, "-", i), "o");
      ASSERT_TRUE(put.ok()) << put.status();
      absl::MutexLock lock(&mu_);
      orders_.insert(put->version);
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
        last_told_[event.key] = {event.version, event.value};
        const bool expired = event.cause == ExpiryCause::kExpired;
        // A bucket that is killed by hand dies early.
        EXPECT_TRUE(told_
                        .emplace(event.version, expired
                                                    ? event.death_time
                                                    : absl::InfiniteFuture())
                        .second)
            << event.key << " died twice";
        if (expired) {
          EXPECT_GE(event.death_time, event.deadline) << event.key;
        }
      }
      watermark_ = batch->watermark;
    }
  }

  // Some are never settled but by their last attempt, orders are put back once,
  // others are rejected now and then.
  Settle Decide(const ExpiredEvent& event, Dice& dice)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (IsPoison(event.version)) return Settle::Nack();
    if (absl::StartsWith(event.key, "order-") &&
        orders_.count(event.version) > 0) {
      return Settle::PutBack();
    }
    return dice.Chance(100) ? Settle::Nack() : Settle::Ack();
  }
  static bool IsPoison(uint64_t version) { return version % 97 == 0; }

  // A member of a group that gets all events and says what to do with them.
  void Work(uint64_t seed) {
    Dice dice(seed);
    const Client client = NewClient();
    WatchOptions options;
    options.group = "workers";
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
          EXPECT_LE(event.attempt, kMaxAttempts) << event.key;
          events_[event.event_id] = event.version;
          settlements.push_back({event.delivery_token, Decide(event, dice)});
        }
      }
      if (settlements.empty()) continue;
      const auto results = client.Settle("workers", settlements);
      absl::MutexLock lock(&mu_);
      for (size_t i = 0; i < settlements.size(); ++i) {
        const SettleAction action = settlements[i].how.action;
        if (action == SettleAction::kNack) continue;
        const uint64_t version = batch->events[i].version;
        if (!results.ok()) {
          maybe_settled_.insert(version);
        } else if ((*results)[i].status.ok()) {
          settled_.insert(version);
          if (const uint64_t again = (*results)[i].version; again != 0) {
            EXPECT_EQ(action, SettleAction::kPutBack);
            put_back_.insert(again);
          }
        } else {
          // Given out again since, by a restart in between.
          EXPECT_GT(crashes_, 0u) << (*results)[i].status;
        }
      }
    }
  }

  // The versions of all dead letters.
  std::set<uint64_t> Letters() {
    std::set<uint64_t> letters;
    const absl::Status scanned =
        NewClient("letters").Scan({}, [&](Entry entry) {
          absl::string_view key = entry.key;
          uint64_t id = 0;
          EXPECT_TRUE(absl::ConsumePrefix(&key, "crash/workers/") &&
                      absl::SimpleAtoi(key, &id))
              << entry.key;
          absl::MutexLock lock(&mu_);
          EXPECT_EQ(events_.count(id), 1u) << entry.key;
          EXPECT_TRUE(letters.insert(events_[id]).second) << entry.key;
          return true;
        });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return letters;
  }

  // All events are settled, or are dead letters.
  void CheckSettled() {
    std::set<uint64_t> letters;
    const auto unsettled = [&] {
      letters = Letters();
      absl::MutexLock lock(&mu_);
      int count = 0;
      for (const auto& [version, death] : told_) {
        if (settled_.count(version) + maybe_settled_.count(version) +
                letters.count(version) ==
            0) {
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
    EXPECT_GE(group->statistics->acked + group->statistics->put_back,
              settled_.size());
    for (const auto& [version, death] : told_) {
      EXPECT_FALSE(letters.count(version) > 0 && settled_.count(version) > 0)
          << version << " was settled, and is a dead letter";
      if (IsPoison(version)) {
        EXPECT_EQ(letters.count(version), 1u) << version;
      }
    }
    EXPECT_GT(letters.size(), 0u);
    EXPECT_GT(put_back_.size(), 0u);
  }

  // Waits until the watcher has seen all that has died by now.
  void AwaitWatcher() {
    Advance(absl::Milliseconds(1));
    EXPECT_TRUE(Await([&] {
      absl::MutexLock lock(&mu_);
      return watermark_ >= absl::FromUnixMicros(now_us_);
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
        const bool as_answered =
            version == known.version && (!found || value == known.value);
        const bool as_unanswered = known.may_be.count(value) > 0;
        absl::MutexLock lock(&mu_);
        const bool died = !found && told_.count(known.version) > 0;
        // What was done without an answer may have died since: an append leaves
        // the entry its time.
        const auto& [last_version, last_value] = last_told_[key];
        const bool died_unanswered = !found && last_version > known.version &&
                                     known.may_be.count(last_value) > 0;
        EXPECT_TRUE(as_answered || as_unanswered || died || died_unanswered)
            << key << " is " << value << ", version " << version
            << ", after version " << known.version;
        known = {version, found ? value : "", {}};
        if (found) account.put.emplace(version, absl::InfinitePast());
      }
    }
  }

  DurableServer server_;
  Client admin_ = NewClient("default");
  Client client_ = NewClient();
  // The server's time, or before it.
  std::atomic<int64_t> now_us_{0};
  std::atomic<uint64_t> batches_{0};
  std::array<Account, kWriters> accounts_;
  std::unique_ptr<Watcher> watcher_;
  std::unique_ptr<Watcher> worker_;
  absl::Notification working_;
  absl::Mutex mu_;
  // By the group's number of the event.
  std::map<uint64_t, uint64_t> events_ ABSL_GUARDED_BY(mu_);
  // Versions of orders, and of what became of them.
  std::set<uint64_t> orders_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> put_back_ ABSL_GUARDED_BY(mu_);
  // Versions whose settlement was answered, or sent.
  std::set<uint64_t> settled_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> maybe_settled_ ABSL_GUARDED_BY(mu_);
  uint64_t crashes_ ABSL_GUARDED_BY(mu_) = 0;
  // When they expired; InfiniteFuture() of those that were killed by hand.
  std::map<uint64_t, absl::Time> told_ ABSL_GUARDED_BY(mu_);
  // By key, the version and value of the last event of it.
  std::map<std::string, std::pair<uint64_t, std::string>> last_told_
      ABSL_GUARDED_BY(mu_);
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
        const uint64_t own = one + static_cast<uint64_t>(w);
        if (w % 2 == 0) {
          Write(w, own);
        } else {
          WriteAhead(w, own);
        }
      });
    }
    PutOrders(crash);
    for (int64_t steps = dice.Draw(2, 8); steps > 0; --steps) {
      const uint64_t done = batches_ + 5;
      EXPECT_TRUE(Await([&] { return batches_ > done; }));
      Advance(absl::Milliseconds(dice.Draw(1, 800)));
      if (dice.Chance(100)) {
        const auto killed = admin_.RotateNamespace("crash");
        EXPECT_TRUE(killed.ok()) << killed.status();
      }
    }
    // Somewhere in the midst of a batch.
    server_.Kill();
    {
      absl::MutexLock lock(&mu_);
      ++crashes_;
    }
    for (std::thread& writer : writers) writer.join();
    server_.Restart();
    AwaitConnections();
    Check();
  }
  // All that was put is replaced, removed, or was told: nothing is forgotten.
  // What was put back dies a second time.
  for (int i = 0; i < 2; ++i) {
    Advance(10 * kTtl);
    AwaitWatcher();
    CheckSettled();
  }
  watcher_->Cancel();
  worker_->Cancel();
  watch.join();
  work.join();
  absl::MutexLock lock(&mu_);
  for (const Account& account : accounts_) {
    for (const auto& [version, dies_from] : account.put) {
      const auto told = told_.find(version);
      EXPECT_TRUE(told != told_.end() || account.ended.count(version) > 0)
          << version << " is forgotten";
      if (told != told_.end()) {
        EXPECT_GE(told->second, dies_from) << version << " died early";
      }
    }
  }
  for (const auto& versions : {orders_, put_back_}) {
    for (const uint64_t version : versions) {
      EXPECT_EQ(told_.count(version), 1u) << version << " is forgotten";
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

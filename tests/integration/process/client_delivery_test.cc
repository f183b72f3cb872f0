// The C++ client's watches and group workers against the server as a process,
// over breaks, restarts and losses.
#include <signal.h>

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/server_process.h"
#include "timecache/client.h"
#include "timecache/group_worker.h"
#include "timecache/virtual_clock.h"
#include "timecache/watcher.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// The default namespace's.
constexpr absl::Duration kTtl = absl::Seconds(30);

class ClientDeliveryTest : public ::testing::Test {
 protected:
  void Start() {
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--virtual-clock", "--listen",
                                 address_.empty() ? "127.0.0.1:0" : address_});
    address_ = server_->address();
  }

  // As kill -9 does, with another in its place.
  void Restart() {
    server_->process().Signal(SIGKILL);
    EXPECT_EQ(server_->process().Wait().signal, SIGKILL);
    Start();
  }

  void SetUp() override { Start(); }

  Client MakeClient() const { return Client(address_); }

  // So many entries die; returns the time then.
  absl::Time Kill(const std::string& prefix, int count,
                  const std::string& value = "value",
                  const std::string& ns = "default") const {
    const Client client = MakeClient().In(ns);
    for (int i = 0; i < count; ++i) {
      EXPECT_TRUE(client.Put(absl::StrCat(prefix, i), value).ok());
    }
    return Pass(2 * kTtl);
  }

  absl::Time Pass(absl::Duration time) const {
    const auto now = VirtualClock(MakeClient()).Advance(time);
    EXPECT_TRUE(now.ok()) << now.status();
    return now.value_or(absl::InfinitePast());
  }

  // All that it tells up to then.
  static std::vector<WatchBatch> ReadUpTo(Watcher& watcher, absl::Time time) {
    std::vector<WatchBatch> batches;
    do {
      auto batch = watcher.Next();
      EXPECT_TRUE(batch.ok()) << batch.status();
      if (!batch.ok()) break;
      batches.push_back(*std::move(batch));
    } while (batches.back().watermark < time);
    return batches;
  }

  static std::vector<std::string> KeysOf(
      const std::vector<WatchBatch>& batches) {
    std::vector<std::string> keys;
    for (const WatchBatch& batch : batches) {
      for (const ExpiredEvent& event : batch.events) keys.push_back(event.key);
    }
    return keys;
  }

  std::string address_;
  std::unique_ptr<ServerProcess> server_;
};

// A clock that stands still has no heartbeats: so every look is a break.
TEST_F(ClientDeliveryTest, EveryEventComesOnceOverBreaks) {
  constexpr int kBreaks = 5;
  constexpr size_t kDeaths = 50;
  int breaks = 0;
  Watcher watcher(MakeClient(), {.wait_for_server = true,
                                 .min_pause = absl::Milliseconds(1),
                                 .max_pause = absl::Milliseconds(1),
                                 .silence_max = absl::Milliseconds(100),
                                 .on_break = [&](const absl::Status&) {
                                   if (++breaks > kBreaks) return;
                                   Kill(absl::StrCat(breaks, "/"), kDeaths);
                                 }});
  std::multiset<std::string> keys;
  absl::Time watermark = absl::InfinitePast();
  bool stands = false;
  while (breaks < kBreaks || keys.size() < kBreaks * kDeaths) {
    const auto batch = watcher.Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    // What died before it stood is not its business.
    if (!stands) breaks = 0;
    stands = true;
    EXPECT_EQ(batch->lost, 0u);
    EXPECT_FALSE(batch->log_changed);
    EXPECT_GE(batch->watermark, watermark);
    watermark = batch->watermark;
    for (const ExpiredEvent& event : batch->events) keys.insert(event.key);
  }
  EXPECT_EQ(keys.size(), kBreaks * kDeaths);
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(),
            keys.size());
}

TEST_F(ClientDeliveryTest, RestartIsSaidAndNothingOfTheNewLogIsMissed) {
  bool broken = false;
  absl::Time now;
  Watcher watcher(MakeClient(), {.min_pause = absl::Milliseconds(1),
                                 .max_pause = absl::Milliseconds(10),
                                 .on_break = [&](const absl::Status&) {
                                   if (std::exchange(broken, true)) return;
                                   Start();
                                   now = Kill("new", 2);
                                 }});
  ASSERT_TRUE(watcher.Next().ok());
  const auto before = ReadUpTo(watcher, Kill("old", 1));
  EXPECT_THAT(KeysOf(before), ElementsAre("old0"));
  server_->process().Signal(SIGKILL);
  server_->process().Wait();
  absl::Time watermark = before.back().watermark;
  auto batch = watcher.Next();
  while (batch.ok() && !batch->reconnected) {  // What was under way.
    watermark = batch->watermark;
    batch = watcher.Next();
  }
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_TRUE(batch->log_changed);
  EXPECT_EQ(batch->missed_after, watermark);
  std::vector<WatchBatch> after = {*batch};
  if (batch->watermark < now) {
    for (auto& more : ReadUpTo(watcher, now)) after.push_back(std::move(more));
  }
  EXPECT_THAT(KeysOf(after), UnorderedElementsAre("new0", "new1"));
  // It goes on from there.
  now = Kill("newer", 1);
  EXPECT_THAT(KeysOf(ReadUpTo(watcher, now)), ElementsAre("newer0"));
}

// A group's workers, and what their handlers were given and have done.
class GroupDeliveryTest : public ClientDeliveryTest {
 protected:
  GroupWorkerOptions Quick() {
    return {.group = "billing",
            .threads = 3,
            .max_in_flight = 20,
            .retry_delay = absl::ZeroDuration(),
            .min_pause = absl::Milliseconds(1),
            .max_pause = absl::Milliseconds(10)};
  }

  void Done(const ExpiredEvent& event) {
    absl::MutexLock lock(&mu_);
    ++done_[event.key];
  }

  // Waits until so many keys are done.
  void AwaitDone(size_t keys) {
    const auto are_done = [&]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return done_.size() >= keys;
    };
    absl::MutexLock lock(&mu_, absl::Condition(&are_done));
  }

  GroupStatistics Statistics() const {
    const auto groups = MakeClient().ListGroups({.include_statistics = true});
    EXPECT_TRUE(groups.ok() && groups->size() == 1) << groups.status();
    return groups.ok() && !groups->empty() ? groups->at(0).statistics.value()
                                           : GroupStatistics();
  }

  absl::Mutex mu_;
  std::map<std::string, int> done_ ABSL_GUARDED_BY(mu_);
};

TEST_F(GroupDeliveryTest, WorkersShareAndSettleEverything) {
  constexpr int kEvents = 600;
  ASSERT_TRUE(MakeClient().CreateGroup("billing").ok());
  const auto handle = [this](const ExpiredEvent& event) -> Settle {
    if (event.attempt == 1 && event.version % 5 == 0) return Settle::Nack();
    if (event.attempt == 1 && event.version % 7 == 0) {
      throw std::runtime_error("once");
    }
    Done(event);
    return Settle::Ack();
  };
  GroupWorker first(MakeClient(), Quick(), handle);
  GroupWorker second(MakeClient(), Quick(), handle);
  auto third = std::make_unique<GroupWorker>(MakeClient(), Quick(), handle);
  Kill("key", kEvents);
  AwaitDone(kEvents / 3);
  third.reset();  // What it has begun is settled; the rest goes to the others.
  AwaitDone(kEvents);
  EXPECT_TRUE(first.Stop().ok());
  EXPECT_TRUE(second.Stop().ok());
  {
    absl::MutexLock lock(&mu_);
    for (const auto& [key, times] : done_) EXPECT_EQ(times, 1) << key;
  }
  const GroupStatistics statistics = Statistics();
  EXPECT_EQ(statistics.acked, static_cast<uint64_t>(kEvents));
  EXPECT_EQ(statistics.backlog, 0u);
  EXPECT_EQ(statistics.in_flight, 0u);
  EXPECT_EQ(statistics.lost, 0u);
  EXPECT_GT(statistics.nacked, 0u);
}

TEST_F(GroupDeliveryTest, WorkerGoesOnWithARestartedServer) {
  std::atomic<int> breaks = 0;
  GroupWorkerOptions options = Quick();
  options.wait_for_server = true;
  options.on_error = [&](const absl::Status&) { ++breaks; };
  GroupWorker worker(MakeClient(), options, [&](const ExpiredEvent& event) {
    Done(event);
    return Settle::Ack();
  });
  while (MakeClient().ListGroups()->empty()) {
  }
  Kill("old", 20);
  AwaitDone(20);
  Restart();
  // Also what dies before it is there again.
  Kill("new", 20);
  AwaitDone(40);
  EXPECT_TRUE(worker.Stop().ok());
  EXPECT_GT(breaks, 0);
  EXPECT_EQ(Statistics().acked, 20u);
}

TEST_F(GroupDeliveryTest, HandlerThatOutlivesARestartSettlesNothingNew) {
  std::atomic<bool> begun = false;
  std::atomic<bool> go_on = false;
  GroupWorkerOptions options = Quick();
  options.wait_for_server = true;
  GroupWorker worker(MakeClient(), options, [&](const ExpiredEvent& event) {
    if (event.key == "old0") {
      begun = true;
      while (!go_on) std::this_thread::yield();
    }
    Done(event);
    return Settle::Ack();
  });
  while (MakeClient().ListGroups()->empty()) {
  }
  Kill("old", 1);
  while (!begun) std::this_thread::yield();
  Restart();
  Kill("new", 1);
  while (MakeClient().ListGroups()->empty()) {
  }
  while (Statistics().delivered == 0) {
  }
  go_on = true;
  while (Statistics().acked == 0) {
  }
  EXPECT_TRUE(worker.Stop().ok());
  absl::MutexLock lock(&mu_);
  EXPECT_EQ(done_["new0"], 1);
}

}  // namespace
}  // namespace timecache::test

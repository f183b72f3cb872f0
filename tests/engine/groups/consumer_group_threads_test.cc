// Members that come, take, settle and leave on threads of their own, while
// entries die and time-outs happen on the reaper's.

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "server/engine/registry.h"
#include "tests/support/engine/group_harness.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int kMembers = 4;
constexpr int kEvents = 20'000;
constexpr int kKeys = 3'000;

// What has been settled, and when it is all.
class Tally {
 public:
  void Settled(const std::string& value) {
    absl::MutexLock lock(&mu_);
    EXPECT_TRUE(settled_.insert(value).second) << value << " settled twice";
  }
  size_t settled() {
    absl::MutexLock lock(&mu_);
    return settled_.size();
  }

 private:
  absl::Mutex mu_;
  std::set<std::string> settled_;
};

// One thread that is a member time and again.
class Worker {
 public:
  Worker(TimeCacheMap* map, const Clock* clock, Tally* tally, unsigned seed)
      : map_(map), clock_(clock), tally_(tally), random_(seed) {
    thread_ = std::thread([this] { Run(); });
  }
  ~Worker() { thread_.join(); }

  void Stop() {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    signal_.Signal();
  }

 private:
  void Run() {
    const auto group = *map_->groups().Find("workers");
    while (!stopping()) {
      const auto member = group->Join(64, [this] { Wake(); });
      for (int takes = 0; takes < 50; ++takes) {
        const EventChunk chunk =
            member->Take(clock_->NowUs(), 32, int64_t{1} << 20);
        // Half of what it has when it leaves is not settled.
        for (size_t i = 0; i < chunk.deliveries.size(); ++i) {
          if (takes < 49 || i % 2 == 0) Settle(chunk.deliveries[i]);
        }
        if (!chunk.more && !Wait()) break;
      }
    }
  }

  void Settle(const Delivery& delivery) {
    const Settlement settlement =
        SettlementOf(delivery, random_() % 5 == 0 ? SettleAction::kNack
                                                  : SettleAction::kAck);
    SettleResult result;
    ASSERT_TRUE(map_->groups()
                    .Settle("workers", {&settlement, 1}, clock_->NowUs(),
                            absl::MakeSpan(&result, 1))
                    .ok());
    // A time-out may have come before.
    if (settlement.action == SettleAction::kAck && result.status.ok()) {
      tally_->Settled(std::string(delivery.event().value));
    }
  }

  void Wake() {
    absl::MutexLock lock(&mu_);
    woken_ = true;
    signal_.Signal();
  }

  bool stopping() {
    absl::MutexLock lock(&mu_);
    return stopping_;
  }

  // Until it is woken; false if it is to stop.
  bool Wait() {
    absl::MutexLock lock(&mu_);
    while (!woken_ && !stopping_) signal_.Wait(&mu_);
    woken_ = false;
    return !stopping_;
  }

  TimeCacheMap* const map_;
  const Clock* const clock_;
  Tally* const tally_;
  std::mt19937 random_;
  absl::Mutex mu_;
  absl::CondVar signal_;
  bool woken_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

TEST(ConsumerGroupThreadsTest, EveryEventIsSettledOnce) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  Registry registry(&clock, &reaper, RegistryLimits());
  const auto map = *registry.Create("map", WithBuckets(kSecond, 11));
  const auto group = *map->groups().FindOrCreate(
      "workers", ExpiryLog::Start::kNow, clock.NowUs());
  Tally tally;
  {
    std::vector<std::unique_ptr<Worker>> workers;
    for (int i = 0; i < kMembers; ++i) {
      workers.push_back(std::make_unique<Worker>(map.get(), &clock, &tally,
                                                 static_cast<unsigned>(i)));
    }
    // Each put waits for the death of the one before it under its key.
    for (int i = 0; i < kEvents; ++i) {
      map->Apply(
          Operation::Put(absl::StrCat("k", i % kKeys), absl::StrCat("v", i)),
          clock.NowUs());
      if (i % kKeys == kKeys - 1) {
        clock.AdvanceBy(2 * kSecond);
        reaper.Flush();
      }
    }
    // Time goes on as long as anything is left: delays, time-outs, patience.
    while (tally.settled() < kEvents) {
      clock.AdvanceBy(2 * kSecond);
      reaper.Flush();
    }
    for (const auto& worker : workers) worker->Stop();
  }
  const GroupStatistics statistics = group->GetStatistics();
  EXPECT_EQ(statistics.acked, static_cast<uint64_t>(kEvents));
  EXPECT_EQ(statistics.backlog, 0u);
  EXPECT_EQ(statistics.in_flight, 0u);
  EXPECT_EQ(statistics.lost, 0u);
  EXPECT_EQ(statistics.members, 0);
  EXPECT_GT(statistics.redelivered, 0u);
  EXPECT_EQ(statistics.delivered - statistics.redelivered,
            static_cast<uint64_t>(kEvents));
}

}  // namespace
}  // namespace timecache::server

#include "server/rpc/watch/watch_hub.h"

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

using Wake = Watcher::Wake;
using ::testing::ElementsAre;

constexpr absl::Duration kPatience = absl::Seconds(30);

// Notes its wake-ups; can be held inside of one.
class FakeWatcher : public Watcher {
 public:
  bool OnWake(Wake why) override {
    absl::MutexLock lock(&mu_);
    wakes_.push_back(why);
    mu_.Await(absl::Condition(
        +[](bool* held) { return !*held; }, &held_));
    return false;
  }

  void Hold(bool held) {
    absl::MutexLock lock(&mu_);
    held_ = held;
  }

  // Waits for `count` wake-ups and takes them.
  std::vector<Wake> Take(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto enough = [this, count]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return wakes_.size() >= count;
    };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&enough), kPatience))
        << "only " << wakes_.size() << " of " << count << " wake-ups";
    return std::exchange(wakes_, {});
  }

 private:
  absl::Mutex mu_;
  bool held_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Wake> wakes_ ABSL_GUARDED_BY(mu_);
};

class WatchHubTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeWatcher> NewWatcher() {
    auto watcher = std::make_shared<FakeWatcher>();
    EXPECT_TRUE(hub_.Add(watcher).ok());
    return watcher;
  }
  // The hub hands out wake-ups in order, and looks at its timers before each:
  // after two of them, everything that was due has been handed out.
  void Settle() {
    for (int i = 0; i < 2; ++i) {
      hub_.Notify(last_);
      last_->Take(1);
    }
  }

  ManualClock clock_{1'000};
  WatchHub hub_{&clock_, 3};
  std::shared_ptr<FakeWatcher> last_ = NewWatcher();
};

TEST_F(WatchHubTest, NotifyWakesOnlyTheOneThatIsMeant) {
  const auto watcher = NewWatcher();
  const auto other = NewWatcher();
  hub_.Notify(watcher);
  EXPECT_THAT(watcher->Take(1), ElementsAre(Wake::kReady));
  Settle();
  EXPECT_THAT(other->Take(0), ElementsAre());
}

TEST_F(WatchHubTest, WakeUpsOfOneThatIsBusyBecomeOne) {
  const auto watcher = NewWatcher();
  watcher->Hold(true);
  hub_.Notify(watcher);
  EXPECT_THAT(watcher->Take(1), ElementsAre(Wake::kReady));
  for (int i = 0; i < 100; ++i) hub_.Notify(watcher);
  watcher->Hold(false);
  Settle();
  EXPECT_THAT(watcher->Take(1), ElementsAre(Wake::kReady));
}

TEST_F(WatchHubTest, TheStrongerReasonStays) {
  const auto watcher = NewWatcher();
  watcher->Hold(true);
  hub_.Notify(watcher);
  watcher->Take(1);
  hub_.Notify(watcher);
  hub_.HeartbeatAll();
  hub_.Notify(watcher);
  watcher->Hold(false);
  EXPECT_THAT(watcher->Take(1), ElementsAre(Wake::kHeartbeat));
  EXPECT_THAT(last_->Take(1), ElementsAre(Wake::kHeartbeat));
  hub_.Notify(watcher);
  EXPECT_THAT(watcher->Take(1), ElementsAre(Wake::kReady));
}

TEST_F(WatchHubTest, ATimerWakesOnceItsTimeHasCome) {
  const auto watcher = NewWatcher();
  hub_.SetTimer(watcher, 2'000);
  clock_.AdvanceTo(1'999);
  Settle();
  EXPECT_THAT(watcher->Take(0), ElementsAre());
  clock_.AdvanceTo(2'000);
  Settle();
  EXPECT_THAT(watcher->Take(1), ElementsAre(Wake::kReady));
  clock_.AdvanceTo(3'000);
  Settle();
  EXPECT_THAT(watcher->Take(0), ElementsAre());
}

TEST_F(WatchHubTest, ATimerTakesThePlaceOfTheOneBefore) {
  const auto watcher = NewWatcher();
  hub_.SetTimer(watcher, 2'000);
  hub_.SetTimer(watcher, 5'000);
  clock_.AdvanceTo(4'999);
  Settle();
  EXPECT_THAT(watcher->Take(0), ElementsAre());
  clock_.AdvanceTo(5'000);
  Settle();
  EXPECT_THAT(watcher->Take(1), ElementsAre(Wake::kReady));
}

TEST_F(WatchHubTest, ManyWatchersOfOneNamespaceDelayAnotherByOneTurn) {
  ManualClock clock(1'000);
  WatchHub hub(&clock, 1'000);
  absl::Mutex mu;
  std::vector<std::string> order;
  class Noting : public Watcher {
   public:
    Noting(absl::Mutex* mu, std::vector<std::string>* order, std::string name,
           int turns)
        : mu_(mu), order_(order), name_(std::move(name)), turns_(turns) {}
    bool OnWake(Wake) override {
      absl::MutexLock lock(mu_);
      order_->push_back(name_);
      return --turns_ > 0;
    }

   private:
    absl::Mutex* const mu_;
    std::vector<std::string>* const order_;
    const std::string name_;
    int turns_;
  };
  const auto gate = std::make_shared<FakeWatcher>();
  ASSERT_TRUE(hub.Add(gate, {.flow = "gate"}).ok());
  gate->Hold(true);
  hub.Notify(gate);
  gate->Take(1);
  std::vector<std::shared_ptr<Watcher>> watchers;
  for (int i = 0; i < 100; ++i) {
    watchers.push_back(std::make_shared<Noting>(&mu, &order, "busy", 2));
    ASSERT_TRUE(hub.Add(watchers.back(), {.flow = "busy"}).ok());
    hub.Notify(watchers.back());
  }
  watchers.push_back(std::make_shared<Noting>(&mu, &order, "quiet", 2));
  ASSERT_TRUE(hub.Add(watchers.back(), {.flow = "quiet"}).ok());
  hub.Notify(watchers.back());
  gate->Hold(false);
  absl::MutexLock lock(&mu);
  const auto all = [&order] { return order.size() == 202; };
  EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&all), kPatience));
  EXPECT_EQ(order[1], "quiet");
  EXPECT_EQ(order[3], "quiet");
}

TEST_F(WatchHubTest, HeartbeatsBeyondTheirMostAreSharedEqually) {
  ManualClock clock(1'000);
  WatchHub hub(&clock, 1'000);
  const WatchHub::Needs modest = {"a", 1, kMicrosPerSecond};
  const WatchHub::Needs greedy = {"b", 64, 10'000};
  std::vector<std::shared_ptr<FakeWatcher>> watchers;
  const auto add = [&](const WatchHub::Needs& needs) {
    watchers.push_back(std::make_shared<FakeWatcher>());
    EXPECT_TRUE(hub.Add(watchers.back(), needs).ok());
  };
  add(modest);
  add(greedy);
  // 6,400 and one a second.
  EXPECT_EQ(hub.HeartbeatUs(greedy), 10'000);
  for (int i = 0; i < 98; ++i) add(greedy);
  // 100 watchers: 100 a second for each of them at most.
  EXPECT_EQ(hub.HeartbeatUs(modest), kMicrosPerSecond);
  EXPECT_EQ(hub.HeartbeatUs(greedy), 640'000);
  for (int i = 2; i < 100; ++i) hub.Remove(watchers[static_cast<size_t>(i)]);
  EXPECT_EQ(hub.HeartbeatUs(greedy), 10'000);
}

TEST_F(WatchHubTest, OneTooManyIsRefusedUntilAnotherGoes) {
  const auto second = NewWatcher();
  const auto third = NewWatcher();
  const auto fourth = std::make_shared<FakeWatcher>();
  const absl::Status refused = hub_.Add(fourth);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), Reason::kMaxWatchers);
  EXPECT_THAT(std::string(refused.message()),
              ::testing::HasSubstr("max_watchers of 3"));
  hub_.Remove(third);
  EXPECT_TRUE(hub_.Add(fourth).ok());
}

TEST_F(WatchHubTest, ARemovedOneIsNeitherWokenNorKept) {
  auto watcher = NewWatcher();
  hub_.SetTimer(watcher, 1'500);
  hub_.Remove(watcher);
  hub_.Notify(watcher);
  clock_.AdvanceTo(2'000);
  hub_.HeartbeatAll();
  Settle();
  EXPECT_THAT(watcher->Take(0), ElementsAre());
  EXPECT_EQ(watcher.use_count(), 1);
  hub_.Remove(watcher);
}

TEST_F(WatchHubTest, ItsLimitMayChange) {
  const auto second = NewWatcher();
  hub_.SetMax(2);
  EXPECT_EQ(hub_.max(), 2);
  EXPECT_EQ(ReasonOf(hub_.Add(std::make_shared<FakeWatcher>())),
            Reason::kMaxWatchers);
  hub_.SetMax(1);
  EXPECT_EQ(hub_.size(), 2);
  hub_.SetMax(3);
  NewWatcher();
  EXPECT_EQ(hub_.size(), 3);
}

TEST_F(WatchHubTest, WaitsForTheLastOneToGo) {
  const auto watcher = NewWatcher();
  EXPECT_EQ(hub_.Drain(), 2u);
  EXPECT_EQ(hub_.WaitForNone(std::chrono::steady_clock::now()), 2u);
  std::thread goes([&] {
    hub_.Remove(watcher);
    hub_.Remove(last_);
  });
  EXPECT_EQ(hub_.WaitForNone(std::chrono::steady_clock::now() +
                             std::chrono::minutes(1)),
            0u);
  goes.join();
}

TEST_F(WatchHubTest, DrainAsksAllToEndAndTakesNoMore) {
  const auto watcher = NewWatcher();
  hub_.Drain();
  EXPECT_THAT(watcher->Take(1), ElementsAre(Wake::kDrain));
  EXPECT_THAT(last_->Take(1), ElementsAre(Wake::kDrain));
  const absl::Status refused = hub_.Add(std::make_shared<FakeWatcher>());
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), Reason::kDraining);
}

}  // namespace
}  // namespace timecache::server

#include "server/service/watch_hub.h"

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
#include "server/engine/error.h"

namespace timecache {
namespace {

using Wake = Watcher::Wake;
using ::testing::ElementsAre;

constexpr absl::Duration kPatience = absl::Seconds(30);

// Notes its wake-ups; can be held inside of one.
class FakeWatcher : public Watcher {
 public:
  void OnWake(Wake why) override {
    absl::MutexLock lock(&mu_);
    wakes_.push_back(why);
    mu_.Await(absl::Condition(
        +[](bool* held) { return !*held; }, &held_));
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

TEST_F(WatchHubTest, OneTooManyIsRefusedUntilAnotherGoes) {
  const auto second = NewWatcher();
  const auto third = NewWatcher();
  const auto fourth = std::make_shared<FakeWatcher>();
  const absl::Status refused = hub_.Add(fourth);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), "MAX_WATCHERS");
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
            "MAX_WATCHERS");
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
  EXPECT_EQ(ReasonOf(refused), "DRAINING");
}

}  // namespace
}  // namespace timecache

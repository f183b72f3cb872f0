#include "server/engine/clock.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

TEST(SystemClockTest, StartsAtTheWallTime) {
  const auto wall_us = [] {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const int64_t before_us = wall_us();
  const SystemClock clock;
  const int64_t now_us = clock.NowUs();
  // A step of the machine's clock while this runs is the only way to a large
  // gap.
  EXPECT_GE(now_us, before_us - kMicrosPerSecond);
  EXPECT_LE(now_us, wall_us() + kMicrosPerSecond);
}

TEST(SystemClockTest, NeverGoesBackInAnyThread) {
  const SystemClock clock;
  std::atomic<int64_t> latest_us{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 10'000; ++j) {
        const int64_t seen_us = latest_us.load();
        const int64_t now_us = clock.NowUs();
        ASSERT_GE(now_us, seen_us);
        int64_t expected_us = seen_us;
        latest_us.compare_exchange_strong(expected_us, now_us);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(latest_us.load(), 0);
}

TEST(SystemClockTest, WaitUntilATimeThatHasPassedReturnsAtOnce) {
  const SystemClock clock;
  absl::Mutex mu;
  SteadyCondVar wake;
  absl::MutexLock lock(&mu);
  const int64_t before_us = clock.NowUs();
  clock.WaitUntil(before_us - kMicrosPerSecond, &mu, &wake);
  EXPECT_GE(clock.NowUs(), before_us);
}

TEST(SystemClockTest, WaitUntilReturnsOnceItsTimeHasCome) {
  const SystemClock clock;
  absl::Mutex mu;
  SteadyCondVar wake;
  absl::MutexLock lock(&mu);
  const int64_t deadline_us = clock.NowUs() + 2'000;
  // May return early; whoever waits asks again.
  while (clock.NowUs() < deadline_us) clock.WaitUntil(deadline_us, &mu, &wake);
  EXPECT_GE(clock.NowUs(), deadline_us);
}

TEST(SystemClockTest, WaitForeverEndsWithTheSignal) {
  const SystemClock clock;
  absl::Mutex mu;
  SteadyCondVar wake;
  bool told = false;
  std::thread signaller([&] {
    absl::MutexLock lock(&mu);
    told = true;
    wake.SignalAll();
  });
  {
    absl::MutexLock lock(&mu);
    while (!told) clock.WaitUntil(kNeverUs, &mu, &wake);
    EXPECT_TRUE(told);
  }
  signaller.join();
}

TEST(ManualClockTest, StandsStillUntilItIsToldToGoOn) {
  ManualClock clock(5);
  EXPECT_EQ(clock.NowUs(), 5);
  EXPECT_EQ(clock.NowUs(), 5);
  clock.AdvanceBy(7);
  EXPECT_EQ(clock.NowUs(), 12);
  clock.AdvanceTo(100);
  EXPECT_EQ(clock.NowUs(), 100);
}

TEST(ManualClockTest, NeverGoesBack) {
  ManualClock clock(100);
  clock.AdvanceTo(99);
  EXPECT_EQ(clock.NowUs(), 100);
}

TEST(ManualClockTest, TwoWhoAdvanceEndAtTheLaterTime) {
  ManualClock clock;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&clock, i] {
      for (int j = 0; j < 10'000; ++j) clock.AdvanceTo(j * 4 + i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(clock.NowUs(), 9'999 * 4 + 3);
}

TEST(ManualClockTest, WaitUntilWaitsForTheSignalAlone) {
  ManualClock clock(1'000);
  absl::Mutex mu;
  SteadyCondVar wake;
  bool told = false;
  std::thread signaller([&] {
    absl::MutexLock lock(&mu);
    told = true;
    wake.SignalAll();
  });
  {
    absl::MutexLock lock(&mu);
    while (!told) clock.WaitUntil(kNeverUs, &mu, &wake);
    EXPECT_EQ(clock.NowUs(), 1'000);
  }
  signaller.join();
}

}  // namespace
}  // namespace timecache::server

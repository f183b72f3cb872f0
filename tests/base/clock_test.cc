#include "server/base/clock.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/engine/fake_machine.h"

namespace timecache::server {
namespace {

constexpr int64_t kHourUs = 3'600 * kMicrosPerSecond;

// Reads the clock as often as a server does; returns how far it has come.
int64_t RunFor(FakeMachine* machine, const SystemClock& clock, int64_t us) {
  const int64_t began_us = clock.NowUs();
  int64_t last_us = began_us;
  for (; us > 0; us -= SystemClock::kBeatUs) {
    machine->Pass(std::min(us, SystemClock::kBeatUs));
    const int64_t now_us = clock.NowUs();
    EXPECT_GE(now_us, last_us);
    last_us = now_us;
  }
  return last_us - began_us;
}

TEST(SystemClockTest, AClockThatIsSetAheadIsFollowedByOnePercent) {
  FakeMachine machine;
  const SystemClock clock(kNeverUs, machine);
  EXPECT_EQ(clock.OffsetUs(), 0);
  machine.SetWall(kHourUs);
  EXPECT_EQ(clock.OffsetUs(), kHourUs);
  // The line from before the step.
  RunFor(&machine, clock, SystemClock::kBeatUs);
  EXPECT_EQ(RunFor(&machine, clock, 100 * kMicrosPerSecond),
            101 * kMicrosPerSecond);
  // 36 s an hour.
  RunFor(&machine, clock, 99 * kHourUs);
  EXPECT_LT(*clock.OffsetUs(), 40 * kMicrosPerSecond);
  RunFor(&machine, clock, 3 * kHourUs);
  EXPECT_LT(*clock.OffsetUs(), kMicrosPerSecond);
  EXPECT_GE(*clock.OffsetUs(), 0);
}

TEST(SystemClockTest, AClockThatIsSetBackIsAwaitedByOnePercent) {
  FakeMachine machine;
  const SystemClock clock(kNeverUs, machine);
  machine.SetWall(-kHourUs);
  RunFor(&machine, clock, SystemClock::kBeatUs);
  EXPECT_EQ(RunFor(&machine, clock, 100 * kMicrosPerSecond),
            99 * kMicrosPerSecond);
  EXPECT_EQ(clock.OffsetUs(), -kHourUs + kMicrosPerSecond);
}

TEST(SystemClockTest, ASmallOffsetFades) {
  FakeMachine machine;
  const SystemClock clock(kNeverUs, machine);
  machine.SetWall(5 * kMicrosPerSecond);
  RunFor(&machine, clock, SystemClock::kSlewTimeUs);
  EXPECT_NEAR(static_cast<double>(*clock.OffsetUs()), 5e6 / 2.718, 5e3);
  RunFor(&machine, clock, kHourUs);
  EXPECT_LT(*clock.OffsetUs(), kMicrosPerSecond / 10);
  RunFor(&machine, clock, 4 * kHourUs);
  EXPECT_LT(*clock.OffsetUs(), kMicrosPerSecond / 500);
}

TEST(SystemClockTest, AStallCountsAsItsGrace) {
  FakeMachine machine;
  const SystemClock clock(500'000, machine);
  EXPECT_EQ(RunFor(&machine, clock, kMicrosPerSecond), kMicrosPerSecond);
  // No longer than the grace: all of it counts.
  const int64_t before_us = clock.NowUs();
  machine.Pass(500'000);
  EXPECT_EQ(clock.NowUs(), before_us + 500'000);
  EXPECT_EQ(clock.stalled_us(), 0);
  machine.Pass(60 * kMicrosPerSecond);
  EXPECT_EQ(clock.NowUs(), before_us + kMicrosPerSecond);
  EXPECT_EQ(clock.stalled_us(), 59'500'000);
  EXPECT_EQ(clock.OffsetUs(), 59'500'000);
  // It catches up, slowly.
  EXPECT_EQ(RunFor(&machine, clock, 10 * kMicrosPerSecond), 10'100'000);
}

TEST(SystemClockTest, WithoutAGraceALongPauseCounts) {
  FakeMachine machine;
  const SystemClock clock(kNeverUs, machine);
  const int64_t before_us = clock.NowUs();
  machine.SetWall(kMicrosPerSecond);
  RunFor(&machine, clock, SystemClock::kBeatUs);
  machine.Pass(5 * kHourUs);
  // Without slewing past the wall clock.
  EXPECT_GT(*clock.OffsetUs(), 0);
  EXPECT_GE(clock.NowUs(), before_us + 5 * kHourUs);
  EXPECT_EQ(clock.stalled_us(), 0);
}

TEST(SystemClockTest, GoesOnFromALaterTimeAndWaitsForTheWallClock) {
  FakeMachine machine;
  SystemClock clock(kNeverUs, machine);
  const int64_t ahead_us = clock.NowUs() + kHourUs;
  clock.AdvanceTo(ahead_us);
  EXPECT_EQ(clock.NowUs(), ahead_us);
  EXPECT_EQ(clock.OffsetUs(), -kHourUs);
  EXPECT_EQ(RunFor(&machine, clock, 10 * kMicrosPerSecond), 9'900'000);
  clock.AdvanceTo(ahead_us);
  EXPECT_EQ(clock.NowUs(), ahead_us + 9'900'000);
}

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

#include "server/base/housekeeping.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace timecache {
namespace {

constexpr std::chrono::microseconds kSoon{100};
constexpr std::chrono::hours kNever{1'000};

TEST(HousekeepingTest, WorkComesBackAtItsInterval) {
  Housekeeping housekeeping;
  absl::BlockingCounter runs(5);
  std::atomic<int> left{5};
  const auto task = housekeeping.Every(kSoon, [&] {
    if (left-- > 0) runs.DecrementCount();
  });
  runs.Wait();
}

TEST(HousekeepingTest, NothingRunsBeforeItsInterval) {
  std::atomic<int> runs{0};
  {
    Housekeeping housekeeping;
    absl::Notification other;
    const auto late = housekeeping.Every(kNever, [&] { ++runs; });
    const auto soon = housekeeping.Every(kSoon, [&] {
      if (!other.HasBeenNotified()) other.Notify();
    });
    other.WaitForNotification();
  }
  EXPECT_EQ(runs, 0);
}

TEST(HousekeepingTest, ATaskThatIsGoneDoesNotRunAgain) {
  Housekeeping housekeeping;
  for (int i = 0; i < 100; ++i) {
    absl::Notification ran;
    std::atomic<bool> gone{false};
    auto task = housekeeping.Every(kSoon, [&] {
      EXPECT_FALSE(gone);
      if (!ran.HasBeenNotified()) ran.Notify();
    });
    if (i % 2 == 0) ran.WaitForNotification();
    task.reset();
    gone = true;
  }
}

// Its destructor waits: what the work uses may go right after it.
TEST(HousekeepingTest, ATaskGoesOnlyAfterItsRun) {
  Housekeeping housekeeping;
  absl::Notification began;
  std::atomic<bool> ended{false};
  auto task = housekeeping.Every(kSoon, [&] {
    if (began.HasBeenNotified()) return;
    began.Notify();
    std::this_thread::yield();
    ended = true;
  });
  began.WaitForNotification();
  task.reset();
  EXPECT_TRUE(ended);
}

TEST(HousekeepingTest, WorkMayAddTasks) {
  Housekeeping housekeeping;
  absl::Notification second;
  std::unique_ptr<Housekeeping::Task> added;
  {
    const auto first = housekeeping.Every(kSoon, [&] {
      if (added != nullptr) return;
      added = housekeeping.Every(kSoon, [&] {
        if (!second.HasBeenNotified()) second.Notify();
      });
    });
    second.WaitForNotification();
  }
  added.reset();
}

TEST(HousekeepingTest, EndsAtOnceAndWithoutTasks) {
  { const Housekeeping none; }
  Housekeeping housekeeping;
  const auto task = housekeeping.Every(kNever, [] {});
}

}  // namespace
}  // namespace timecache

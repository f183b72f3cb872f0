#include "server/engine/reaper.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Start = ExpiryLog::Start;

// Only a test that fails waits for so long.
constexpr absl::Duration kPatience = absl::Seconds(60);

std::shared_ptr<TimeCacheMap> MakeMap(const std::string& name,
                                      const NamespaceOptions& options,
                                      int64_t created_us = kStartUs) {
  return std::make_shared<TimeCacheMap>(name, options, nullptr, created_us);
}

TEST(ReaperTest, FlushPublishesAllThatIsDue) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  const auto map = MakeMap("a", Tens());
  reaper.Add(map);
  const auto cursor = map->Subscribe(Start::kNow, clock.NowUs(), [] {});
  map->Apply(Operation::Put("key", "v"), clock.NowUs());
  clock.AdvanceBy(10 * kSecond - 1);
  reaper.Flush();
  Reading reading = ReadAll(cursor.get());
  EXPECT_THAT(reading.events, IsEmpty());
  EXPECT_GE(reading.watermark_us, clock.NowUs());
  clock.AdvanceBy(1);
  reaper.Flush();
  reading = ReadAll(cursor.get());
  EXPECT_THAT(reading.Texts(), ElementsAre("key=v"));
  EXPECT_GE(reading.watermark_us, clock.NowUs());
}

TEST(ReaperTest, FlushOfNothingReturns) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  reaper.Flush();
  const auto map = MakeMap("a", Tens());
  reaper.Add(map);
  clock.AdvanceBy(kSecond);
  reaper.Flush();
  EXPECT_GE(map->watermark_us(), clock.NowUs());
}

TEST(ReaperTest, AMapWithEntriesMayBeAdded) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  const auto map = MakeMap("a", Tens());
  map->Apply(Operation::Put("key", "v"), clock.NowUs());
  clock.AdvanceBy(20 * kSecond);
  const auto cursor = map->Subscribe(Start::kEarliest, clock.NowUs(), [] {});
  reaper.Add(map);
  reaper.Flush();
  EXPECT_THAT(ReadAll(cursor.get()).Texts(), ElementsAre("key=v"));
}

// Both maps die at one moment. The small one's event does not wait for the
// sweep of the huge one.
TEST(ReaperTest, AHugeBucketDoesNotDelayAnotherMap) {
  constexpr int kHuge = 20 * Reaper::kMaxSweepStep;
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  const auto huge = MakeMap("huge", Tens());
  const auto small = MakeMap("small", Tens());
  std::atomic<int> wakes{0};
  std::atomic<bool> waited{false};
  const auto huge_cursor = huge->Subscribe(Start::kNow, kStartUs, [] {});
  const auto small_cursor = small->Subscribe(Start::kNow, kStartUs, [&] {
    ++wakes;
    waited = huge->watermark_us() >= clock.NowUs();
  });
  for (int i = 0; i < kHuge; ++i) {
    huge->Apply(Operation::Put(absl::StrCat("key", i), "v"), kStartUs);
  }
  small->Apply(Operation::Put("key", "v"), kStartUs);
  reaper.Add(huge);
  reaper.Add(small);
  clock.AdvanceBy(10 * kSecond);
  reaper.Flush();
  EXPECT_EQ(ReadAll(huge_cursor.get()).events.size(),
            static_cast<size_t>(kHuge));
  EXPECT_THAT(ReadAll(small_cursor.get()).Texts(), ElementsAre("key=v"));
  EXPECT_EQ(wakes, 1);
  EXPECT_FALSE(waited) << "for all of the huge bucket to be told";
}

TEST(ReaperTest, ARemovedMapIsLeftAlone) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  auto map = MakeMap("a", Tens());
  reaper.Add(map);
  reaper.Remove(map.get());
  const auto cursor = map->Subscribe(Start::kNow, clock.NowUs(), [] {});
  map->Apply(Operation::Put("key", "v"), clock.NowUs());
  clock.AdvanceBy(20 * kSecond);
  reaper.Flush();
  EXPECT_THAT(ReadAll(cursor.get()).events, IsEmpty());
  reaper.Remove(map.get());
  EXPECT_EQ(map.use_count(), 1);
}

TEST(ReaperTest, TheReaperKeepsItsMapsAlive) {
  ManualClock clock(kStartUs);
  std::weak_ptr<TimeCacheMap> watched;
  {
    Reaper reaper(&clock);
    auto map = MakeMap("a", Tens());
    watched = map;
    reaper.Add(std::move(map));
    reaper.Flush();
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
}

TEST(ReaperTest, EventsThatAreTooOldAreTrimmed) {
  NamespaceOptions options = Tens();
  options.retention_us = 60 * kSecond;
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  const auto map = MakeMap("a", options);
  reaper.Add(map);
  map->Apply(Operation::Put("key", "v"), clock.NowUs());
  clock.AdvanceBy(10 * kSecond);
  reaper.Flush();
  EXPECT_EQ(map->GetStatistics(clock.NowUs()).events_retained, 1u);
  clock.AdvanceBy(61 * kSecond);
  reaper.Flush();
  EXPECT_EQ(map->GetStatistics(clock.NowUs()).events_retained, 0u);
}

TEST(ReaperTest, ASlowSweepIsReported) {
  constexpr int kEntries = 4 * Reaper::kMaxSweepStep;
  ManualClock clock(kStartUs);
  absl::Mutex mu;
  std::vector<std::string> slow;
  Reaper reaper(&clock, [&](const std::string& name, int64_t took_us) {
    absl::MutexLock lock(&mu);
    slow.push_back(name);
    EXPECT_GE(took_us, Reaper::kSlowSweepUs);
  });
  const auto map = MakeMap("slow", Tens());
  // Time passes while the bucket is swept: with the first batch that it makes.
  bool passed = false;
  const auto cursor = map->Subscribe(Start::kNow, clock.NowUs(), [&] {
    if (!passed) clock.AdvanceBy(2 * Reaper::kSlowSweepUs);
    passed = true;
  });
  for (int i = 0; i < kEntries; ++i) {
    map->Apply(Operation::Put(absl::StrCat("key", i), "v"), kStartUs);
  }
  reaper.Add(map);
  clock.AdvanceBy(10 * kSecond);
  reaper.Flush();
  reaper.Flush();
  absl::MutexLock lock(&mu);
  EXPECT_THAT(slow, ElementsAre("slow"));
}

// What a watcher with a thread of its own does.
class Waiter {
 public:
  std::function<void()> Wake() {
    return [this] {
      absl::MutexLock lock(&mu_);
      woken_ = true;
      signal_.Signal();
    };
  }

  // Reads until `events` have come.
  std::vector<DeliveredEvent> Await(ExpiryLog::Cursor* cursor, size_t events) {
    std::vector<DeliveredEvent> told;
    while (told.size() < events) {
      {
        absl::MutexLock lock(&mu_);
        while (!woken_) {
          if (signal_.WaitWithTimeout(&mu_, kPatience) && !woken_) {
            ADD_FAILURE() << "nothing came";
            return told;
          }
        }
        woken_ = false;
      }
      for (DeliveredEvent& each : ReadAll(cursor).events) {
        told.push_back(std::move(each));
      }
    }
    return told;
  }

 private:
  absl::Mutex mu_;
  absl::CondVar signal_;
  bool woken_ = false;
};

TEST(ReaperTest, OnTheSystemClockEventsComeByThemselves) {
  const SystemClock clock;
  Reaper reaper(&clock);
  const auto map =
      MakeMap("a", WithBuckets(kMinTtlUs, kMinBuckets), clock.NowUs());
  reaper.Add(map);
  Waiter waiter;
  const auto cursor = map->Subscribe(Start::kNow, clock.NowUs(), waiter.Wake());
  for (int i = 0; i < 20; ++i) {
    const int64_t put_us = clock.NowUs();
    map->Apply(Operation::Put("key", absl::StrCat(i)), put_us);
    const std::vector<DeliveredEvent> told = waiter.Await(cursor.get(), 1);
    ASSERT_EQ(told.size(), 1u);
    EXPECT_EQ(told[0].value, absl::StrCat(i));
    EXPECT_GE(told[0].death_us, put_us + kMinTtlUs);
    EXPECT_GE(clock.NowUs(), told[0].death_us) << "told early";
  }
}

TEST(ReaperTest, AnEarlierDeathWakesTheReaperFromALongSleep) {
  const SystemClock clock;
  Reaper reaper(&clock);
  const auto map =
      MakeMap("a", WithBuckets(3600 * kSecond, kMaxBuckets), clock.NowUs());
  reaper.Add(map);
  Waiter waiter;
  const auto cursor = map->Subscribe(Start::kNow, clock.NowUs(), waiter.Wake());
  map->Apply(Operation::Put("long", "v"), clock.NowUs());
  reaper.Flush();
  map->Apply(Operation::Put("short", "v").WithTtl(kMinTtlUs), clock.NowUs());
  const std::vector<DeliveredEvent> told = waiter.Await(cursor.get(), 1);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].key, "short");
}

TEST(ReaperTest, ARotationOnTheSystemClockIsToldByItself) {
  const SystemClock clock;
  Reaper reaper(&clock);
  const auto map = MakeMap("a", Tens(), clock.NowUs());
  reaper.Add(map);
  Waiter waiter;
  const auto cursor = map->Subscribe(Start::kNow, clock.NowUs(), waiter.Wake());
  map->Apply(Operation::Put("key", "v"), clock.NowUs());
  EXPECT_EQ(map->Rotate(clock.NowUs()), 1);
  const std::vector<DeliveredEvent> told = waiter.Await(cursor.get(), 1);
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].cause, Cause::kRotated);
}

TEST(ReaperTest, MapsMayComeAndGoWhileItRuns) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const auto map = MakeMap("a", Tens(), clock.NowUs());
        const auto cursor = map->Subscribe(Start::kNow, clock.NowUs(), [] {});
        reaper.Add(map);
        map->Apply(Operation::Put("key", "v"), clock.NowUs());
        // The others move the clock too, and a put never counts from before
        // what its map was swept to: the deadline is that of the clock now.
        clock.AdvanceTo(clock.NowUs() + 11 * kSecond);
        reaper.Flush();
        EXPECT_EQ(ReadAll(cursor.get()).events.size(), 1u);
        reaper.Remove(map.get());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace timecache::server

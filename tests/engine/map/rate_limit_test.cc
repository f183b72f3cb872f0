// Operations a second: at once, on the average, and by many threads.
#include "server/base/rate_limit.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/local_store.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

TEST(RateLimitTest, WithoutALimitAllMayBe) {
  RateLimit limit(0, kStartUs);
  EXPECT_EQ(limit.Take(1'000'000, kStartUs), 1'000'000u);
  EXPECT_EQ(limit.WaitUs(kStartUs), 0);
  EXPECT_EQ(limit.refused(), 0u);
}

TEST(RateLimitTest, ASecondsMayComeAtOnceAndThenOneAtATime) {
  RateLimit limit(10, kStartUs);
  int64_t now_us = kStartUs + 5 * kSecond;
  EXPECT_EQ(limit.Take(8, now_us), 8u);
  EXPECT_EQ(limit.Take(8, now_us), 2u);
  EXPECT_EQ(limit.Take(1, now_us), 0u);
  EXPECT_EQ(limit.refused(), 7u);
  EXPECT_EQ(limit.WaitUs(now_us), kSecond / 10);
  now_us += kSecond / 10 - 1;
  EXPECT_EQ(limit.Take(1, now_us), 0u);
  EXPECT_EQ(limit.WaitUs(now_us), 1);
  now_us += 1;
  EXPECT_EQ(limit.Take(2, now_us), 1u);
  // An idle second fills it again, and no more than that.
  now_us += 100 * kSecond;
  EXPECT_EQ(limit.Take(100, now_us), 10u);
}

TEST(RateLimitTest, ATimeBehindTheLatestChangesNothing) {
  RateLimit limit(10, kStartUs);
  EXPECT_EQ(limit.Take(10, kStartUs + kSecond), 10u);
  EXPECT_EQ(limit.Take(1, kStartUs), 0u);
  EXPECT_EQ(limit.WaitUs(kStartUs), kSecond + kSecond / 10);
  EXPECT_EQ(limit.Take(10, INT64_MAX), 10u);
  EXPECT_EQ(limit.Take(1, 0), 0u);
}

TEST(RateLimitTest, ChangesWhileItIsInForce) {
  RateLimit limit(1'000, kStartUs);
  EXPECT_EQ(limit.Take(1'000, kStartUs), 1'000u);
  limit.Set(2);
  EXPECT_EQ(limit.Take(1, kStartUs), 0u);
  EXPECT_EQ(limit.WaitUs(kStartUs), kSecond / 2);
  EXPECT_EQ(limit.Take(5, kStartUs + kSecond), 2u);
  limit.Set(0);
  EXPECT_EQ(limit.Take(5, kStartUs + kSecond), 5u);
}

// Whatever comes, in any second and the one that may come at once there are
// never more than two seconds' worth, and who asks all the time gets nearly all
// that he may.
TEST(RateLimitTest, KeepsTheAverageWhateverComes) {
  for (const int64_t per_second :
       {int64_t{1}, int64_t{3}, int64_t{999}, int64_t{1'000'000},
        RateLimit::kMaxPerSecond}) {
    Dice dice(static_cast<uint64_t>(per_second));
    RateLimit limit(per_second, kStartUs);
    int64_t now_us = kStartUs;
    double taken = 0;
    for (int i = 0; i < 20'000; ++i) {
      now_us += dice.Draw(0, 1'999);
      taken += static_cast<double>(
          limit.Take(static_cast<size_t>(2 * per_second), now_us));
      const double seconds =
          static_cast<double>(now_us - kStartUs) / kMicrosPerSecond;
      const auto rate = static_cast<double>(per_second);
      ASSERT_LE(taken, (seconds + 1) * rate + 1e-6);
      ASSERT_GE(taken, (seconds + 1) * rate * 0.99 - 1) << per_second;
    }
  }
}

TEST(RateLimitTest, ManyThreadsShareIt) {
  constexpr int kThreads = 4;
  constexpr int kTakes = 20'000;
  RateLimit limit(1'000, kStartUs);
  std::atomic<int64_t> now_us{kStartUs};
  std::atomic<uint64_t> taken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTakes; ++i) taken += limit.Take(3, now_us += 10);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // 0.8 s have passed.
  EXPECT_EQ(taken + limit.refused(), uint64_t{3} * kThreads * kTakes);
  EXPECT_LE(taken, 1'800u);
  EXPECT_GE(taken, 1'790u);
}

class StoreRateTest : public ::testing::Test {
 protected:
  StoreRateTest() {
    NamespaceOptions options = WithBuckets(10 * kSecond, 11);
    options.max_operations_per_second = 4;
    map_ = *registry_.Create("map", options);
  }

  std::vector<Result> Execute(std::vector<Operation> operations) {
    std::vector<Result> results(operations.size());
    store_.Execute(
        "map", operations, absl::MakeSpan(results),
        [](const absl::Status& status) { EXPECT_TRUE(status.ok()); });
    return results;
  }

  void ExpectRefused(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_EQ(ReasonOf(status), Reason::kMaxOperationRate);
    EXPECT_EQ(MetadataOf(status).at("max_operations_per_second"), "4");
    EXPECT_EQ(RetryAfterUsOf(status), kSecond / 4);
  }

  ManualClock clock_{kStartUs};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  std::shared_ptr<TimeCacheMap> map_;
  LocalStore store_{&registry_, &clock_};
};

TEST_F(StoreRateTest, OperationsBeyondItFailEachForItself) {
  const auto put = [](absl::string_view key) {
    return Operation::Put(key, "v");
  };
  const std::vector<Result> results =
      Execute({put("a"), put("b"), put("c"), put("d"), put("e"), put("f")});
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(results[i].status.ok());
  ExpectRefused(results[4].status);
  ExpectRefused(results[5].status);
  ExpectRefused(Execute({Operation::Get("a")})[0].status);
  EXPECT_EQ(map_->GetSize(clock_.NowUs()).entries, 4);
  EXPECT_EQ(map_->GetStatistics(clock_.NowUs()).rate_limited, 3u);
  clock_.AdvanceBy(kSecond / 4);
  EXPECT_TRUE(Execute({Operation::Get("a")})[0].has_entry);
}

TEST_F(StoreRateTest, ASizeAndAWalkCountAsOne) {
  Execute({Operation::Put("a", "v"), Operation::Put("b", "v")});
  store_.GetSize("map", [](const absl::StatusOr<NamespaceSize>& size) {
    ASSERT_TRUE(size.ok());
    EXPECT_EQ(size->entries, 2);
  });
  ScanPosition place;
  int visited = 0;
  for (bool more = true; more;) {
    store_.Scan(
        "map", "", 1, 1 << 20, &place, &more, [&](auto&&...) { ++visited; },
        [](const absl::Status& status) { ASSERT_TRUE(status.ok()); });
  }
  EXPECT_EQ(visited, 2);
  store_.GetSize("map", [this](const absl::StatusOr<NamespaceSize>& size) {
    ExpectRefused(size.status());
  });
  ScanPosition other;
  bool more = true;
  store_.Scan(
      "map", "", 1, 1 << 20, &other, &more, [](auto&&...) {},
      [this](const absl::Status& status) { ExpectRefused(status); });
}

TEST_F(StoreRateTest, AnUpdateTakesEffectAtOnce) {
  Execute({Operation::Get("a"), Operation::Get("a"), Operation::Get("a"),
           Operation::Get("a")});
  const auto set = [this](int64_t per_second) {
    return registry_
        .Update("map",
                [=](NamespaceOptions* options) {
                  options->max_operations_per_second = per_second;
                  return absl::OkStatus();
                })
        .status();
  };
  EXPECT_EQ(FieldOf(set(RateLimit::kMaxPerSecond + 1)),
            "max_operations_per_second");
  EXPECT_TRUE(set(0).ok());
  EXPECT_TRUE(Execute({Operation::Get("a")})[0].status.ok());
}

}  // namespace
}  // namespace timecache::server

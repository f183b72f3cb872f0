// Maps of restart_policy FIRE over restarts: what counts as downtime.

#include <cstdint>

#include "gtest/gtest.h"
#include "tests/durable/durable_store_fixture.h"
#include "tests/support/await.h"

namespace timecache::server {
namespace {

using ::timecache::test::Await;

class DowntimeTest : public DurableStoreTest {
 protected:
  void Restart(int64_t downtime_us, int64_t behind_us = 0) {
    LosePower();
    store_.clock().AdvanceBy(downtime_us);
    store_.recovery_options().clock_behind_us = behind_us;
    Reopen();
  }
  NamespaceStatistics Statistics() {
    return store_.map("a")->GetStatistics(store_.clock().NowUs());
  }
  // Of the deaths of the start.
  NamespaceStatistics AwaitDeaths(uint64_t count) {
    EXPECT_TRUE(
        Await([&] { return Statistics().expired_while_down >= count; }));
    return Statistics();
  }
  int64_t DeadlineOf(const std::string& key) {
    const Result get = store_.Execute("a", Operation::Get(key));
    return get.found ? get.entry.deadline_us : 0;
  }
};

TEST_F(DowntimeTest, DeathsOfTheDowntimeAreNoViolations) {
  ASSERT_TRUE(store_.Put("a", "1", "value").status.ok());
  ASSERT_TRUE(store_.Put("a", "2", "value").status.ok());
  Restart(kHour);
  NamespaceStatistics statistics = AwaitDeaths(2);
  EXPECT_EQ(statistics.expired, 2u);
  EXPECT_EQ(statistics.expired_while_down, 2u);
  EXPECT_EQ(statistics.bound_violations, 0u);
  EXPECT_EQ(statistics.lateness.total(), 0u);
  // A later one is late by the server's fault.
  ASSERT_TRUE(store_.Put("a", "3", "value").status.ok());
  store_.AdvanceBy(kHour);
  statistics = Statistics();
  EXPECT_EQ(statistics.expired, 3u);
  EXPECT_EQ(statistics.expired_while_down, 2u);
  EXPECT_EQ(statistics.bound_violations, 1u);
}

TEST_F(DowntimeTest, CountsBeginWithTheServer) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
    store_.AdvanceBy(61 * kSecond);
    ASSERT_EQ(Statistics().expired, 1u) << i;
    ASSERT_EQ(Statistics().operations.puts, 1u) << i;
    Restart(i % 2 * kHour);
    const NamespaceStatistics statistics = Statistics();
    EXPECT_EQ(statistics.expired, 0u);
    EXPECT_EQ(statistics.bound_violations, 0u);
    EXPECT_EQ(statistics.lateness.total(), 0u);
    EXPECT_EQ(statistics.operations.puts, 0u);
  }
}

TEST_F(DowntimeTest, WhatTheClockWasBehindEndsNoLife) {
  const Result put = store_.Put("a", "key", "value");
  ASSERT_TRUE(put.status.ok());
  store_.AdvanceBy(10 * kSecond);
  Restart(kHour + kSecond, kHour);
  EXPECT_EQ(DeadlineOf("key"), kStartUs + kHour + 60 * kSecond);
  // Once.
  Restart(kSecond);
  EXPECT_EQ(DeadlineOf("key"), kStartUs + kHour + 60 * kSecond);
  store_.AdvanceBy(60 * kSecond);
  EXPECT_EQ(store_.Get("a", "key"), "(none)");
}

TEST_F(DowntimeTest, TheRestOfTheDowntimeCounts) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  Restart(kHour + 70 * kSecond, kHour);
  EXPECT_EQ(AwaitDeaths(1).expired_while_down, 1u);
}

// The clock was set back after it was noted how far it was ahead.
TEST_F(DowntimeTest, NoLifeMovesBeyondNow) {
  ASSERT_TRUE(store_.Put("a", "key", "value").status.ok());
  Restart(10 * kSecond, kHour);
  EXPECT_EQ(DeadlineOf("key"), kStartUs + 70 * kSecond);
}

}  // namespace
}  // namespace timecache::server

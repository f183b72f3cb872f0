#include "server/engine/shard/usage.h"

#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

TEST(UsageTest, NoLimitIsNoLimit) {
  Usage usage(0, 0);
  EXPECT_EQ(usage.Add(1'000'000, int64_t{1} << 50), LimitHit::kNone);
  EXPECT_EQ(usage.entries(), 1'000'000);
  EXPECT_EQ(usage.bytes(), int64_t{1} << 50);
}

TEST(UsageTest, CountsUpToItsLimitsAndNotPastThem) {
  Usage usage(2, 100);
  EXPECT_EQ(usage.Add(1, 50), LimitHit::kNone);
  EXPECT_EQ(usage.Add(1, 50), LimitHit::kNone);
  EXPECT_EQ(usage.Add(1, 0), LimitHit::kMaxEntries);
  EXPECT_EQ(usage.Add(0, 1), LimitHit::kMaxBytes);
  EXPECT_EQ(usage.entries(), 2);
  EXPECT_EQ(usage.bytes(), 100);
}

TEST(UsageTest, ARefusedAdditionLeavesNothingBehind) {
  Usage server(10, 1'000);
  Usage usage(10, 100, &server);
  EXPECT_EQ(usage.Add(1, 101), LimitHit::kMaxBytes);
  EXPECT_EQ(usage.entries(), 0);
  EXPECT_EQ(usage.bytes(), 0);
  EXPECT_EQ(server.entries(), 0);
  EXPECT_EQ(server.bytes(), 0);
}

TEST(UsageTest, AServersAccountLimitsAllItsMaps) {
  Usage server(2, 100);
  Usage one(0, 0, &server);
  Usage two(0, 0, &server);
  EXPECT_EQ(one.Add(1, 60), LimitHit::kNone);
  EXPECT_EQ(two.Add(1, 41), LimitHit::kServerMaxBytes);
  EXPECT_EQ(two.Add(1, 40), LimitHit::kNone);
  EXPECT_EQ(one.Add(1, 0), LimitHit::kServerMaxEntries);
  one.Subtract(1, 60);
  EXPECT_EQ(server.entries(), 1);
  EXPECT_EQ(server.bytes(), 40);
  EXPECT_EQ(two.Add(1, 60), LimitHit::kNone);
  EXPECT_EQ(two.entries(), 2);
  EXPECT_EQ(two.bytes(), 100);
}

TEST(UsageTest, WhatDoesNotGrowIsNeverRefused) {
  Usage usage(0, 0);
  EXPECT_EQ(usage.Add(3, 300), LimitHit::kNone);
  usage.SetLimits(1, 10);
  EXPECT_EQ(usage.max_entries(), 1);
  EXPECT_EQ(usage.max_bytes(), 10);
  EXPECT_EQ(usage.Add(0, 0), LimitHit::kNone);
  EXPECT_EQ(usage.Add(0, -5), LimitHit::kNone);
  EXPECT_EQ(usage.bytes(), 295);
  EXPECT_EQ(usage.Add(0, 1), LimitHit::kMaxBytes);
  EXPECT_EQ(usage.Add(1, -5), LimitHit::kMaxEntries);
  EXPECT_EQ(usage.bytes(), 295);
}

TEST(UsageTest, ManyThreadsNeverPassTheLimitTogether) {
  constexpr int kThreads = 4;
  constexpr int kAdditions = 20'000;
  Usage server(0, 0);
  Usage usage(1'000, 0, &server);
  std::atomic<int64_t> added{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < kAdditions; ++j) {
        if (usage.Add(1, 7) == LimitHit::kNone) ++added;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added.load(), 1'000);
  EXPECT_EQ(usage.entries(), 1'000);
  EXPECT_EQ(usage.bytes(), 7'000);
  EXPECT_EQ(server.entries(), 1'000);
  EXPECT_EQ(server.bytes(), 7'000);
}

}  // namespace
}  // namespace timecache::server

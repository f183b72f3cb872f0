// The process's memory: counted as it is taken and given back, and what happens
// where there is no more.
#include "server/base/memory_budget.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/engine/registry.h"
#include "tests/support/engine/group_harness.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using Level = MemoryBudget::Level;

constexpr int64_t kBudgetMiB = 1 << 20;

MemoryBudget& Budget() { return MemoryBudget::Process(); }

// The account is the process's: each test leaves it without a limit.
class MemoryBudgetTest : public ::testing::Test {
 protected:
  ~MemoryBudgetTest() override { Budget().SetLimit(0); }

  // The most that may be held from now on, beside what is held.
  static void SetRoom(int64_t bytes) {
    Budget().SetLimit(Budget().used_bytes() + bytes);
  }
};

NamespaceOptions Small() {
  NamespaceOptions options = WithBuckets(10 * kSecond, 11);
  options.num_shards = 1;
  return options;
}

// Puts entries of a KiB until one is refused; returns how many there are.
int Fill(MapHarness* harness, const std::string& prefix = "k") {
  const std::string value(1'000, 'v');
  for (int i = 0;; ++i) {
    const Result result = harness->Put(absl::StrCat(prefix, i), value);
    if (result.status.ok()) continue;
    EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonOf(result.status), Reason::kMaxMemory);
    return i;
  }
}

TEST_F(MemoryBudgetTest, LevelsFollowTheSum) {
  MemoryBudget budget;
  budget.Add(1'000'000);
  EXPECT_EQ(budget.level(), Level::kRoom);
  EXPECT_EQ(budget.limit_bytes(), 0);
  budget.SetLimit(1'000'001);
  EXPECT_EQ(budget.level(), Level::kRoom);
  budget.Add(1);
  EXPECT_EQ(budget.level(), Level::kFull);
  EXPECT_EQ(budget.BytesBeyond(MemoryBudget::kBacklogHigh), 0);
  budget.Add(1'000'001 / MemoryBudget::kReserveShare);
  EXPECT_EQ(budget.level(), Level::kExhausted);
  budget.Add(-budget.used_bytes() + 1'000'001 + 7);
  EXPECT_EQ(budget.BytesBeyond(MemoryBudget::kBacklogHigh), 7);
  // A sixteenth is 62,500.
  EXPECT_EQ(budget.BytesBeyond(MemoryBudget::kBacklogLow), 7 + 62'500);
  EXPECT_EQ(budget.BytesBeyond(MemoryBudget::kRetainedLow), 7 + 5 * 62'500);
  budget.SetLimit(0);
  EXPECT_EQ(budget.level(), Level::kRoom);
  EXPECT_EQ(budget.BytesBeyond(MemoryBudget::kRetainedLow), 0);
  budget.SetLimit(INT64_MAX - 1);
  EXPECT_EQ(budget.level(), Level::kRoom);
}

TEST_F(MemoryBudgetTest, WhatAMapTakesItGivesBack) {
  const int64_t before = Budget().used_bytes();
  {
    MapHarness harness(Small());
    for (int i = 0; i < 50'000; ++i) {
      harness.Put(absl::StrCat("key", i), std::string(100, 'v'));
    }
    const int64_t held = Budget().used_bytes() - before;
    const int64_t told = harness.Statistics().memory_bytes;
    EXPECT_GE(held, told);
    // Whole slabs are counted.
    EXPECT_LE(held, told + told / 4 + 8 * 2 * kBudgetMiB);
    // Dead, but told to a watcher: as events now.
    harness.Pass(11 * kSecond);
    harness.Sweep();
    EXPECT_GE(Budget().used_bytes() - before, 50'000 * 100);
  }
  EXPECT_EQ(Budget().used_bytes(), before);
}

TEST_F(MemoryBudgetTest, MessagesInFlightKeepTheirEventsCounted) {
  const int64_t before = Budget().used_bytes();
  std::shared_ptr<const EventBatch> pinned;
  {
    MapHarness harness(Small());
    const auto cursor = harness.Subscribe(ExpiryLog::Start::kNow);
    harness.Put("key", std::string(kBudgetMiB / 2, 'v'));
    harness.Pass(11 * kSecond);
    harness.Sweep();
    pinned = cursor->Read(kBudgetMiB).batches.at(0);
  }
  EXPECT_GE(Budget().used_bytes() - before, kBudgetMiB / 2);
  pinned.reset();
  EXPECT_EQ(Budget().used_bytes(), before);
}

TEST_F(MemoryBudgetTest, AtTheLimitWhatGrowsIsRefusedAndAllElseGoesOn) {
  MapHarness harness(Small());
  SetRoom(8 * kBudgetMiB);
  const int entries = Fill(&harness);
  // Of the four slabs one is the index's.
  EXPECT_GT(entries, 2'000);
  EXPECT_LT(entries, 9'000);
  const absl::Status error = harness.Put("more", "v").status;
  EXPECT_EQ(MetadataOf(error).at("max_memory_bytes"),
            absl::StrCat(Budget().limit_bytes()));
  EXPECT_EQ(MetadataOf(error).count("used_bytes"), 1u);
  EXPECT_THAT(std::string(error.message()),
              testing::HasSubstr("retry when entries have expired"));
  // Reads, smaller overwrites, renewals, removals.
  EXPECT_TRUE(harness.Contains("k0"));
  EXPECT_TRUE(harness.Put("k0", "short").status.ok());
  EXPECT_EQ(harness.Get("k0"), "short");
  EXPECT_FALSE(harness.Put("k0", "short and longer").status.ok());
  EXPECT_TRUE(harness.Apply(Operation::Touch("k1")).status.ok());
  EXPECT_TRUE(harness.Apply(Operation::Remove("k2")).found);
  EXPECT_EQ(harness.Entries(), entries - 1);
  EXPECT_GE(
      harness.Statistics().refused[static_cast<size_t>(LimitHit::kMaxMemory)],
      3u);
}

TEST_F(MemoryBudgetTest, ABatchFailsOnlyWhereItGrows) {
  MapHarness harness(Small());
  harness.Put("here", "value");
  SetRoom(0);
  const std::vector<Operation> ops = {
      Operation::Put("fresh", "v"), Operation::Get("here"),
      Operation::Put("here", "less"), Operation::Put("other", "v"),
      Operation::Remove("here")};
  std::vector<Result> results(ops.size());
  harness.map().ApplyBatch(ops, harness.now_us(), absl::MakeSpan(results));
  EXPECT_EQ(ReasonOf(results[0].status), Reason::kMaxMemory);
  EXPECT_TRUE(results[1].has_entry);
  EXPECT_TRUE(results[2].status.ok());
  EXPECT_EQ(ReasonOf(results[3].status), Reason::kMaxMemory);
  EXPECT_TRUE(results[4].found);
}

// The memory is the process's: nobody loses entries to others' puts.
TEST_F(MemoryBudgetTest, EvictingMapsAreRefusedLikeOthers) {
  NamespaceOptions options = Small();
  options.limit_policy = LimitPolicy::kEvictOldest;
  MapHarness harness(options);
  SetRoom(4 * kBudgetMiB);
  const int entries = Fill(&harness);
  EXPECT_EQ(harness.Entries(), entries);
  EXPECT_EQ(harness.Statistics().evicted, 0u);
}

TEST_F(MemoryBudgetTest, DeathsMakeRoomAgain) {
  NamespaceOptions options = Small();
  options.retention_us = 0;
  MapHarness harness(options);
  SetRoom(8 * kBudgetMiB);
  int before = Fill(&harness);
  for (int round = 0; round < 3; ++round) {
    harness.Pass(11 * kSecond);
    // The harness's own watcher reads them, and lets them go.
    harness.ReadEvents();
    harness.Sweep();
    const int after = Fill(&harness, absl::StrCat(round, "."));
    EXPECT_GT(after, before / 2);
    before = after;
  }
}

TEST_F(MemoryBudgetTest, WithoutMemoryTheLogDropsItsOldestEventsAndSaysSo) {
  MapHarness harness(Small());
  const auto cursor = harness.Subscribe(ExpiryLog::Start::kNow);
  const auto die = [&](const std::string& prefix) {
    for (int i = 0; i < 4; ++i) {
      harness.Put(absl::StrCat(prefix, i), std::string(100'000, 'v'));
    }
    harness.Pass(11 * kSecond);
    harness.Sweep();
  };
  die("a");
  die("b");
  SetRoom(8 * kBudgetMiB);
  die("c");
  EXPECT_EQ(harness.Statistics().events_retained, 12u);
  // Somebody else takes all, and more.
  const int64_t limit = Budget().limit_bytes();
  const MemoryCharge other(limit + limit / MemoryBudget::kReserveShare -
                           Budget().used_bytes() + 500'000);
  ASSERT_EQ(Budget().level(), Level::kExhausted);
  harness.Sweep();
  // The newest stay.
  const Reading reading = ReadAll(cursor.get());
  EXPECT_GT(reading.lost, 0u);
  EXPECT_EQ(reading.lost + reading.events.size(), 12u);
  ASSERT_FALSE(reading.events.empty());
  EXPECT_EQ(reading.events.back().key[0], 'c');
}

TEST_F(MemoryBudgetTest, WithoutMemoryEvenRenewalsAreRefused) {
  MapHarness harness(Small());
  harness.Put("key", "value");
  SetRoom(0);
  MemoryCharge other(Budget().limit_bytes() / 8);
  ASSERT_EQ(Budget().level(), Level::kExhausted);
  EXPECT_EQ(ReasonOf(harness.Apply(Operation::Touch("key")).status),
            Reason::kMaxMemory);
  EXPECT_EQ(ReasonOf(harness.Put("key", "v").status), Reason::kMaxMemory);
  EXPECT_EQ(harness.Get("key"), "value");
  EXPECT_TRUE(harness.Apply(Operation::Remove("key")).found);
}

TEST_F(MemoryBudgetTest, NoMapOrGroupIsMadeWithoutMemory) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  Registry registry(&clock, &reaper, RegistryLimits());
  const auto map = *registry.Create("map", Small());
  SetRoom(0);
  EXPECT_EQ(ReasonOf(registry.Create("more", Small()).status()),
            Reason::kMaxMemory);
  EXPECT_EQ(ReasonOf(map->groups()
                         .FindOrCreate("g", ExpiryLog::Start::kNow, kStartUs)
                         .status()),
            Reason::kMaxMemory);
  SetRoom(kBudgetMiB);
  EXPECT_TRUE(registry.Create("more", Small()).ok());
}

// All threads together never hold more than the limit and what each of them
// takes at once, and all is given back.
TEST_F(MemoryBudgetTest, ThreadsHoldItTogether) {
  constexpr int kThreads = 4;
  const int64_t before = Budget().used_bytes();
  {
    NamespaceOptions options = WithBuckets(10 * kSecond, 11);
    options.num_shards = 4;
    TimeCacheMap map("map", options, nullptr, kStartUs);
    SetRoom(32 * kBudgetMiB);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&map, t] {
        const std::string value(10'000, 'v');
        int refused = 0;
        for (int i = 0; refused < 100; ++i) {
          const Result result = map.Apply(
              Operation::Put(absl::StrCat(t, ".", i), value), kStartUs);
          if (!result.status.ok()) ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_GE(Budget().used_bytes(), Budget().limit_bytes());
    EXPECT_LE(Budget().used_bytes(),
              Budget().limit_bytes() + kThreads * 2 * kBudgetMiB);
  }
  EXPECT_EQ(Budget().used_bytes(), before);
}

}  // namespace
}  // namespace timecache::server

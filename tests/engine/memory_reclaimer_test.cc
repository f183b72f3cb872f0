// Events give way to entries as memory approaches its limit.
#include "server/base/memory_reclaimer.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/block_pool.h"
#include "server/base/error.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;
using Start = ExpiryLog::Start;

constexpr int64_t kMiB = 1 << 20;
constexpr int kValueBytes = 10'000;

MemoryBudget& Memory() { return MemoryBudget::Process(); }

int64_t Mark(int64_t sixteenths) {
  return Memory().limit_bytes() / MemoryBudget::kSixteenths * sixteenths;
}

NamespaceOptions Short() {
  NamespaceOptions options = WithBuckets(2 * kSecond, 101);
  options.num_shards = 4;
  return options;
}

// The account is the process's: each test leaves it without a limit.
class MemoryReclaimerTest : public ::testing::Test {
 protected:
  ~MemoryReclaimerTest() override { Memory().SetLimit(0); }

  // The most that may be held from now on, beside what is held.
  static void SetRoom(int64_t bytes) {
    Memory().SetLimit(Memory().used_bytes() + bytes);
  }
  // Leaves so much below the limit.
  static MemoryCharge HoldAllBut(int64_t bytes) {
    return MemoryCharge(Memory().limit_bytes() - Memory().used_bytes() - bytes);
  }
};

// Entries of about 10 kB, up to so many bytes; all must be taken.
int PutBytes(TimeCacheMap* map, int64_t bytes, int64_t now_us) {
  const std::string value(kValueBytes, 'v');
  const int count = static_cast<int>(bytes / kValueBytes);
  for (int i = 0; i < count; ++i) {
    const absl::Status status =
        map->Apply(Operation::Put(absl::StrCat("key", i), value), now_us)
            .status;
    EXPECT_TRUE(status.ok()) << map->name() << ", put " << i << ": " << status;
    if (!status.ok()) break;
  }
  return count;
}

// So many bytes die, in batches of about 100 kB.
uint64_t Die(MapHarness* harness, int64_t bytes) {
  uint64_t died = 0;
  for (int64_t left = bytes; left > 0; left -= 10 * kValueBytes) {
    died += static_cast<uint64_t>(
        PutBytes(&harness->map(), 10 * kValueBytes, harness->now_us()));
    harness->Pass(3 * kSecond);
    harness->Sweep();
  }
  return died;
}

int64_t Retained(MapHarness* harness) {
  return harness->Statistics().events_retained_bytes;
}

// Namespaces that are filled and die one after the other, with nobody watching:
// together far more than the memory there is.
struct Scenario {
  std::string name;
  int64_t limit_bytes;
  int namespaces;
  int64_t bytes_each;
};

class RetainedEventsTest : public MemoryReclaimerTest,
                           public ::testing::WithParamInterface<Scenario> {};

TEST_P(RetainedEventsTest, NeverStopPutsAndAreCountedAsLost) {
  const Scenario& scenario = GetParam();
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  Registry registry(&clock, &reaper, RegistryLimits());
  struct Watched {
    std::shared_ptr<TimeCacheMap> map;
    ExpiryLog::Point point;
    uint64_t puts = 0;
  };
  std::vector<Watched> all;
  // Its own bound of bytes drops nothing: what is lost was reclaimed.
  NamespaceOptions options = Short();
  options.retention_bytes = scenario.limit_bytes;
  for (int i = 0; i < scenario.namespaces; ++i) {
    Watched& one = all.emplace_back();
    one.map = *registry.Create(absl::StrCat("ns-", i), options);
    // A watcher that goes away before anything dies.
    one.point =
        one.map->Subscribe(Start::kNow, clock.NowUs(), [] {})->Read(1).point;
  }
  Memory().SetLimit(scenario.limit_bytes);
  for (int round = 0; round < 2; ++round) {
    for (Watched& one : all) {
      one.puts += static_cast<uint64_t>(
          PutBytes(one.map.get(), scenario.bytes_each, clock.NowUs()));
      clock.AdvanceBy(3 * kSecond);
      reaper.Flush();
      // Not only refused no put: it keeps well clear of the limit.
      ASSERT_LE(Memory().used_bytes(), Mark(MemoryBudget::kRetainedHigh));
    }
  }
  uint64_t delivered = 0;
  uint64_t lost = 0;
  for (const Watched& one : all) {
    const Reading reading =
        ReadAll((*one.map->Resume(one.point, clock.NowUs(), [] {})).get());
    EXPECT_EQ(reading.lost + reading.events.size(), one.puts);
    const NamespaceStatistics statistics =
        one.map->GetStatistics(clock.NowUs());
    EXPECT_EQ(statistics.events_reclaimed, reading.lost);
    EXPECT_EQ(statistics.refused[static_cast<size_t>(LimitHit::kMaxMemory)],
              0u);
    delivered += reading.events.size();
    lost += reading.lost;
  }
  EXPECT_GT(lost, 0u);
  // It drops no more than it must.
  EXPECT_GE(static_cast<int64_t>(delivered) * kValueBytes,
            Mark(MemoryBudget::kRetainedLow) / 2);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, RetainedEventsTest,
    ::testing::Values(Scenario{"SixInSmall", 32 * kMiB, 6, 7'500'000},
                      Scenario{"SixAt256MiB", 256 * kMiB, 6, 60'000'000},
                      Scenario{"TwentySixInSmall", 128 * kMiB, 26, 7'500'000}),
    [](const auto& info) { return info.param.name; });

TEST_F(MemoryReclaimerTest, BelowItsMarkNothingIsDropped) {
  MapHarness harness(Short());
  SetRoom(32 * kMiB);
  const uint64_t died = Die(&harness, 8 * kMiB);
  EXPECT_FALSE(MemoryReclaimer::Process().Step());
  EXPECT_EQ(harness.Statistics().events_retained, died);
  EXPECT_EQ(harness.Statistics().events_reclaimed, 0u);
}

TEST_F(MemoryReclaimerTest, PastItsMarkItGoesOnToTheLowerOneThenRests) {
  MapHarness harness(Short());
  Die(&harness, 40 * kMiB);
  Memory().SetLimit(Memory().used_bytes() / 13 * 16);
  const int64_t before = Retained(&harness);
  while (MemoryReclaimer::Process().Step()) {
  }
  EXPECT_LE(Memory().used_bytes(), Mark(MemoryBudget::kRetainedLow));
  EXPECT_GE(Memory().used_bytes(),
            Mark(MemoryBudget::kRetainedLow) - MemoryReclaimer::kTurnBytes);
  const int64_t retained = Retained(&harness);
  EXPECT_LT(retained, before);
  // Between the marks it rests.
  const MemoryCharge some(Mark(1) / 2);
  EXPECT_FALSE(MemoryReclaimer::Process().Step());
  EXPECT_EQ(Retained(&harness), retained);
}

TEST_F(MemoryReclaimerTest, APutAtTheLimitTakesWhatIsRetainedItself) {
  MapHarness dead(Short());
  MapHarness live(Short());
  Die(&dead, 8 * kMiB);
  SetRoom(kMiB);
  // Nobody sweeps or comes round meanwhile.
  PutBytes(&live.map(), 7 * kMiB, live.now_us());
  EXPECT_GT(dead.Statistics().events_reclaimed, 0u);
  // In a batch, too.
  const std::string value(kValueBytes, 'v');
  std::vector<std::string> keys(100);
  std::vector<Operation> ops;
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = absl::StrCat("more", i);
    ops.push_back(Operation::Put(keys[i], value));
  }
  Memory().SetLimit(0);
  Die(&dead, 24 * kMiB);
  Memory().SetLimit(Memory().used_bytes());
  std::vector<Result> results(ops.size());
  live.map().ApplyBatch(ops, live.now_us(), absl::MakeSpan(results));
  for (const Result& result : results) EXPECT_TRUE(result.status.ok());
}

TEST_F(MemoryReclaimerTest, NamespacesAndGroupsAreMadeInPlaceOfEvents) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  Registry registry(&clock, &reaper, RegistryLimits());
  MapHarness dead(Short());
  Die(&dead, 4 * kMiB);
  Memory().SetLimit(Memory().used_bytes());
  const auto map = registry.Create("map", Short());
  ASSERT_TRUE(map.ok()) << map.status();
  Die(&dead, kMiB);
  Memory().SetLimit(Memory().used_bytes());
  EXPECT_TRUE((*map)->groups().FindOrCreate("g", Start::kNow, kStartUs).ok());
}

TEST_F(MemoryReclaimerTest, TheNewestBatchStaysUntilItHasBeenRead) {
  MapHarness dead(Short());
  const auto cursor = dead.Subscribe(Start::kNow);
  Die(&dead, 10 * kValueBytes);
  ASSERT_EQ(dead.Statistics().events_retained, 10u);
  SetRoom(0);
  EXPECT_EQ(ReasonOf(MemoryReclaimer::Process().MakeRoom()),
            Reason::kMaxMemory);
  EXPECT_EQ(ReadAll(cursor.get()).events.size(), 10u);
  // The harness's own has not read it yet.
  EXPECT_EQ(ReasonOf(MemoryReclaimer::Process().MakeRoom()),
            Reason::kMaxMemory);
  EXPECT_EQ(dead.ReadEvents().events.size(), 10u);
  EXPECT_TRUE(MemoryReclaimer::Process().MakeRoom().ok());
  EXPECT_EQ(dead.Statistics().events_retained, 0u);
}

// Beside a thousand logs, each look costs as much as many puts.
TEST_F(MemoryReclaimerTest, ABatchThatIsRefusedLooksForEventsOnce) {
  MapHarness full(Short());
  // Later than the last refusal of another test: the reclaimer is the process's, too.
  full.Pass(3600 * kSecond);
  SetRoom(0);
  std::vector<std::string> keys;
  std::vector<Operation> ops;
  for (int i = 0; i < 1'000; ++i) keys.push_back(absl::StrCat("key", i));
  for (const std::string& key : keys) ops.push_back(Operation::Put(key, "v"));
  std::vector<Result> results(ops.size());
  const int64_t before = MemoryReclaimer::Process().looks();
  full.map().ApplyBatch(ops, full.now_us(), absl::MakeSpan(results));
  for (const Result& result : results) {
    ASSERT_EQ(ReasonOf(result.status), Reason::kMaxMemory);
  }
  EXPECT_EQ(MemoryReclaimer::Process().looks(), before + 1);
  full.Pass(kSecond);
  EXPECT_EQ(ReasonOf(full.Put("key", "v").status), Reason::kMaxMemory);
  EXPECT_EQ(MemoryReclaimer::Process().looks(), before + 2);
}

// Single ones, as they come one after the other.
TEST_F(MemoryReclaimerTest, WritersThatAreRefusedLookForEventsNowAndThen) {
  constexpr int kLogs = 100;
  MapHarness full(Short());
  std::vector<std::unique_ptr<ExpiryLog>> logs;
  for (int i = 0; i < kLogs; ++i) {
    logs.push_back(std::make_unique<ExpiryLog>(kSecond, kMiB));
  }
  SetRoom(0);
  const int64_t before = MemoryReclaimer::Process().looks();
  for (int i = 0; i < 10'000; ++i) {
    full.Pass(1);
    EXPECT_EQ(ReasonOf(full.Put("key", "v").status), Reason::kMaxMemory);
  }
  // A pause is at least so long.
  EXPECT_LE(MemoryReclaimer::Process().looks(),
            before + 1 +
                10'000 / (MemoryReclaimer::kPauseUs +
                          kLogs * MemoryReclaimer::kPausePerLogUs));
  // Many more events: it looks at once.
  const MemoryCharge none(0);
  const EventMemoryCharge events(2 * kMiB);
  const int64_t then = MemoryReclaimer::Process().looks();
  EXPECT_EQ(ReasonOf(full.Put("key", "v").status), Reason::kMaxMemory);
  EXPECT_EQ(MemoryReclaimer::Process().looks(), then + 1);
}

// What the block pool keeps to use it again is held, and goes first.
TEST_F(MemoryReclaimerTest, IdleBlocksCountAndGiveWay) {
  if (!BlockPool::kPooled) GTEST_SKIP() << "there are no slabs";
  constexpr int kSlabs = 10;
  BlockPool& pool = BlockPool::Default();
  std::vector<void*> blocks;
  for (int i = 0; i < 2 * kSlabs; ++i) {
    blocks.push_back(pool.Allocate(BlockPool::kMaxBlockBytes));
  }
  const int64_t used = Memory().used_bytes();
  SetRoom(kMiB);
  for (void* const block : blocks) pool.Free(block);
  EXPECT_LE(Memory().used_bytes(),
            used - int64_t{kSlabs} * int64_t{BlockPool::kSlabBytes});
  const MemoryCharge others(2 * kMiB);
  EXPECT_EQ(Memory().level(), MemoryBudget::Level::kFull);
  const size_t slabs = pool.slab_bytes();
  EXPECT_TRUE(MemoryReclaimer::Process().MakeRoom(kStartUs).ok());
  EXPECT_LT(pool.slab_bytes(), slabs);
  EXPECT_EQ(Memory().level(), MemoryBudget::Level::kRoom);
}

// Who holds little loses nothing to one who holds much, however old it is.
TEST_F(MemoryReclaimerTest, ABurstInOneNamespaceLeavesTheOthersTheirEvents) {
  MapHarness little(Short());
  MapHarness burst(Short());
  const uint64_t few = Die(&little, kMiB);
  Die(&burst, 24 * kMiB);
  ASSERT_EQ(little.Statistics().events_retained, few);
  Memory().SetLimit(Memory().used_bytes());
  while (MemoryReclaimer::Process().Step()) {
  }
  EXPECT_GT(burst.Statistics().events_reclaimed, 0u);
  EXPECT_EQ(little.Statistics().events_reclaimed, 0u);
  EXPECT_EQ(little.Statistics().events_retained, few);
}

TEST_F(MemoryReclaimerTest, AmongEqualsTheOldestEventsGoFirst) {
  constexpr size_t kMaps = 5;
  std::vector<std::unique_ptr<MapHarness>> maps;
  // Each dies a while after the one before.
  for (size_t i = 0; i < kMaps; ++i) {
    maps.push_back(std::make_unique<MapHarness>(
        Short(), kStartUs + static_cast<int64_t>(i) * 1000 * kSecond));
    Die(maps.back().get(), 4 * kMiB);
  }
  Memory().SetLimit(Memory().used_bytes() / 12 * 16 - kMiB);
  while (MemoryReclaimer::Process().Step()) {
  }
  std::vector<uint64_t> lost;
  for (const auto& map : maps) {
    lost.push_back(map->Statistics().events_reclaimed);
  }
  EXPECT_GT(lost.front(), 0u);
  EXPECT_TRUE(std::is_sorted(lost.rbegin(), lost.rend()))
      << testing::PrintToString(lost);
  // And what is left is shared about evenly.
  for (const auto& map : maps) {
    EXPECT_GE(Retained(map.get()), 4 * kMiB - 5 * MemoryReclaimer::kTurnBytes);
  }
}

TEST_F(MemoryReclaimerTest, BacklogsOfGroupsGoLastAndNotWhatMembersHold) {
  MapHarness plain(Short());
  MapHarness grouped(Short());
  const auto group =
      *grouped.map().groups().FindOrCreate("g", Start::kNow, grouped.now_us());
  const auto member = group->Join(5, [] {});
  Die(&plain, 4 * kMiB);
  const uint64_t died = Die(&grouped, 4 * kMiB);
  plain.ReadEvents();
  grouped.ReadEvents();
  ASSERT_EQ(member->Take(grouped.now_us(), 5, 100 * kMiB).deliveries.size(),
            5u);

  // Little is wanted: retained events make room, here and there.
  Memory().SetLimit(Memory().used_bytes());
  ASSERT_TRUE(MemoryReclaimer::Process().MakeRoom().ok());
  EXPECT_GT(plain.Statistics().events_reclaimed, 0u);
  EXPECT_EQ(group->GetStatistics().lost, 0u);
  // All of them: still the group has lost nothing.
  {
    const MemoryCharge other = HoldAllBut(kMiB);
    while (MemoryReclaimer::Process().Step()) {
    }
    EXPECT_LE(Retained(&plain), 2 * 10 * kValueBytes);
    EXPECT_EQ(group->GetStatistics().lost, 0u);
  }
  // More: now it loses its oldest, and says how many.
  const MemoryCharge other = HoldAllBut(-kMiB);
  ASSERT_TRUE(MemoryReclaimer::Process().MakeRoom().ok());
  const GroupStatistics statistics = group->GetStatistics();
  EXPECT_GT(statistics.lost, 0u);
  EXPECT_EQ(statistics.in_flight, 5u);
  EXPECT_EQ(statistics.lost + statistics.backlog + statistics.in_flight, died);
}

// What a member takes and never settles cannot be dropped by a limit of its own
// group; at the limit of all it is, down to its namespace's share.
TEST_F(MemoryReclaimerTest, WhatAMemberHoardsKeepsNobodyFromWriting) {
  MapHarness hoarded(Short());
  MapHarness modest(Short());
  MapHarness writer(Short());
  const auto join = [](MapHarness* harness) {
    return (*harness->map().groups().FindOrCreate("g", Start::kNow,
                                                  harness->now_us()))
        ->Join(65'536, [] {});
  };
  const auto hoarder = join(&hoarded);
  const auto worker = join(&modest);
  const auto died = static_cast<uint64_t>(16 * kMiB / kValueBytes);
  const std::string value(kValueBytes, 'v');
  for (uint64_t i = 0; i < died; ++i) {
    ASSERT_TRUE(hoarded.Put(absl::StrCat("key", i), value).status.ok());
  }
  hoarded.Pass(3 * kSecond);
  Die(&modest, 10 * kValueBytes);
  hoarded.ReadEvents();
  modest.ReadEvents();
  const uint64_t hoards =
      hoarder->Take(hoarded.now_us(), 65'536, 100 * kMiB).deliveries.size();
  ASSERT_EQ(hoards, died);
  ASSERT_EQ(worker->Take(modest.now_us(), 10, kMiB).deliveries.size(), 10u);
  SetRoom(kMiB / 2);
  PutBytes(&writer.map(), 8 * kMiB, writer.now_us());
  EXPECT_EQ(Memory().level(), MemoryBudget::Level::kRoom);
  const auto statistics = [](MapHarness* harness) {
    return harness->map().groups().List().front()->GetStatistics();
  };
  EXPECT_GT(statistics(&hoarded).lost, 0u);
  EXPECT_EQ(statistics(&hoarded).lost + statistics(&hoarded).in_flight, died);
  EXPECT_EQ(statistics(&modest).lost, 0u);
  EXPECT_EQ(statistics(&modest).in_flight, 10u);
  // A member is told.
  EXPECT_EQ(hoarder->Take(hoarded.now_us(), 1, kMiB).lost,
            statistics(&hoarded).lost);
}

// Each group may hold one event, however little its namespace may keep.
TEST_F(MemoryReclaimerTest, ManyGroupsOfOneNamespaceHoldNoMoreThanOne) {
  NamespaceOptions options = Short();
  options.max_backlog_bytes = kMiB;
  options.retention_us = 0;
  MapHarness hoarded(options);
  MapHarness writer(Short());
  struct Hoarder {
    std::shared_ptr<ConsumerGroup> group;
    std::unique_ptr<GroupMember> member;
  };
  std::vector<Hoarder> hoarders;
  const std::string value(kMiB - 1000, 'v');
  for (int i = 0; i < 32; ++i) {
    Hoarder& one = hoarders.emplace_back();
    one.group = *hoarded.map().groups().FindOrCreate(
        absl::StrCat("g", i), Start::kNow, hoarded.now_us());
    one.member = one.group->Join(10, [] {});
    hoarded.PutFor(absl::StrCat("key", i), value, kMinTtlUs);
    hoarded.Pass(kSecond / 20);
    hoarded.ReadEvents();
    one.member->Take(hoarded.now_us(), 10, 100 * kMiB);
  }
  EXPECT_GT(hoarded.Statistics().backlog_bytes, 24 * kMiB);
  SetRoom(kMiB);
  PutBytes(&writer.map(), 24 * kMiB, writer.now_us());
  EXPECT_LT(hoarded.Statistics().backlog_bytes, 12 * kMiB);
}

// A batch that a group needs is not dropped from the log in vain.
TEST_F(MemoryReclaimerTest, WhatAGroupHoldsAnywayStaysRetained) {
  MapHarness harness(Short());
  const auto group =
      *harness.map().groups().FindOrCreate("g", Start::kNow, harness.now_us());
  const uint64_t died = Die(&harness, 4 * kMiB);
  harness.ReadEvents();
  Memory().SetLimit(Memory().used_bytes() + 1);
  while (MemoryReclaimer::Process().Step()) {
  }
  EXPECT_EQ(harness.Statistics().events_retained, died);
  EXPECT_EQ(group->GetStatistics().lost, 0u);
}

TEST_F(MemoryReclaimerTest, TheRefusalSaysWhatHoldsTheMemory) {
  MapHarness dead(Short());
  MapHarness grouped(Short());
  const auto group =
      *grouped.map().groups().FindOrCreate("g", Start::kNow, grouped.now_us());
  // One batch each, which stays.
  Die(&dead, 10 * kValueBytes);
  Die(&grouped, 10 * kValueBytes);
  NamespaceOptions options = Short();
  options.retention_us = 0;
  grouped.ReadEvents();
  grouped.Update(options);
  grouped.Sweep();
  const MemoryBudget::Shares shares = Memory().shares();
  EXPECT_GE(shares.retained_bytes, 10 * kValueBytes);
  EXPECT_GE(shares.backlog_bytes, 10 * kValueBytes);
  EXPECT_GT(shares.entries_bytes, 0);
  EXPECT_EQ(shares.entries_bytes + shares.retained_bytes + shares.backlog_bytes,
            Memory().used_bytes());
  // So that a batch is within what its namespace may keep in any case.
  const MemoryCharge other(64 * kMiB);
  SetRoom(0);
  const absl::Status status = grouped.Put("key", "value").status;
  EXPECT_EQ(ReasonOf(status), Reason::kMaxMemory);
  const auto metadata = MetadataOf(status);
  for (const auto& [name, words] :
       {std::pair("entries_bytes", " in entries"),
        std::pair("retained_bytes", " in retained events"),
        std::pair("backlog_bytes", " in backlogs of consumer groups")}) {
    ASSERT_EQ(metadata.count(name), 1u) << name;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(metadata.at(name), words)));
  }
}

}  // namespace
}  // namespace timecache::server

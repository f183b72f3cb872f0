#include "server/engine/store/statistics.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/reason.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

TEST(DurationHistogramTest, CountsUpToPowersOfTwoMicroseconds) {
  DurationHistogram histogram;
  histogram.Add(-5, 1);  // counts as 0
  histogram.Add(1, 2);
  histogram.Add(64, 3);
  histogram.Add(65, 4);
  EXPECT_EQ(histogram.CountAtMost(0), 3u);
  EXPECT_EQ(histogram.CountAtMost(5), 3u);
  EXPECT_EQ(histogram.CountAtMost(6), 6u);
  EXPECT_EQ(histogram.CountAtMost(7), 10u);
  EXPECT_EQ(histogram.CountAtMost(63), histogram.total());
  EXPECT_EQ(histogram.total(), 10u);
  EXPECT_EQ(histogram.sum_us(), 2 + 3 * 64 + 4 * 65);
  EXPECT_EQ(histogram.max_us(), 65);
}

TEST(DurationHistogramTest, QuantilesAreBoundsAndNoMoreThanTheLargest) {
  DurationHistogram histogram;
  EXPECT_EQ(histogram.QuantileUs(0.5), 0);
  histogram.Add(100, 9);
  histogram.Add(5'000, 1);
  EXPECT_EQ(histogram.QuantileUs(0.5), 128);
  EXPECT_EQ(histogram.QuantileUs(1), 5'000);
  histogram.Add(INT64_MAX, 1);
  EXPECT_EQ(histogram.QuantileUs(1), INT64_MAX);
  EXPECT_EQ(histogram.CountAtMost(63), 11u);
}

TEST(MapStatisticsTest, CountWhatEachOperationOfABatchDid) {
  MapHarness harness(NamespaceOptions{});
  harness.Put("a", "1");
  harness.Put("a", "2");
  Operation absent = Operation::Put("a", "3");
  absent.condition = Condition::kIfAbsent;
  EXPECT_FALSE(harness.Apply(absent).status.ok());
  const std::vector<Operation> batch = {
      Operation::Put("b", "1"),    Operation::Get("a"),
      Operation::Get("none"),      Operation::Contains("b"),
      Operation::Contains("none"), Operation::Remove("b"),
      Operation::Remove("none"),   Operation::Touch("a"),
  };
  std::vector<Result> results(batch.size());
  harness.map().ApplyBatch(batch, harness.now_us(), absl::MakeSpan(results));
  const OperationCounts operations = harness.Statistics().operations;
  EXPECT_EQ(operations.puts, 3u);
  EXPECT_EQ(operations.hits, 2u);
  EXPECT_EQ(operations.misses, 2u);
  EXPECT_EQ(operations.removals, 1u);
}

TEST(MapStatisticsTest, ALookupOfWhatDiedIsAMiss) {
  MapHarness harness(WithBuckets(30 * kSecond, 4));
  harness.Put("a", "1");
  harness.Pass(40 * kSecond);
  EXPECT_EQ(harness.Get("a"), "(none)");
  EXPECT_EQ(harness.Statistics().operations.misses, 1u);
}

TEST(MapStatisticsTest, CountWhatALimitRefusedByTheLimit) {
  NamespaceOptions options;
  options.max_entries = 1;
  MapHarness harness(options);
  harness.Put("a", "1");
  EXPECT_FALSE(harness.Put("b", "1").status.ok());
  EXPECT_FALSE(harness.Put("c", "1").status.ok());
  const NamespaceStatistics statistics = harness.Statistics();
  const auto refused = [&](LimitHit hit) {
    return statistics.refused[static_cast<size_t>(hit)];
  };
  EXPECT_EQ(refused(LimitHit::kMaxEntries), 2u);
  EXPECT_EQ(refused(LimitHit::kMaxBytes), 0u);
  EXPECT_EQ(statistics.operations.puts, 1u);
}

TEST(MapStatisticsTest, TellWhatWatchersLostAndSinceWhenEventsAreKept) {
  NamespaceOptions options = WithBuckets(30 * kSecond, 4);
  options.retention_bytes = 1 << 20;
  MapHarness harness(options);
  EXPECT_EQ(harness.Statistics().oldest_retained_us, kNeverUs);
  const auto slow = harness.Subscribe(ExpiryLog::Start::kNow);
  // Two buckets of which the log keeps one.
  const std::string large(900 << 10, 'x');
  harness.Put("a", large);
  harness.Pass(40 * kSecond);
  harness.Sweep();
  harness.Put("b", large);
  harness.Pass(40 * kSecond);
  harness.Sweep();
  EXPECT_EQ(harness.Statistics().watch_lost, 0u);
  EXPECT_EQ(ReadAll(slow.get()).lost, 1u);
  const NamespaceStatistics statistics = harness.Statistics();
  EXPECT_EQ(statistics.watch_lost, 1u);
  EXPECT_EQ(statistics.oldest_retained_us, harness.now_us());
}

TEST(MapStatisticsTest, TellHowFarTheSlowestWatchIsBehind) {
  MapHarness harness(WithBuckets(30 * kSecond, 4));
  const auto slow = harness.Subscribe(ExpiryLog::Start::kNow);
  const auto quick = harness.Subscribe(ExpiryLog::Start::kNow);
  EXPECT_EQ(harness.Statistics().watch_lag, 0u);
  EXPECT_EQ(harness.Statistics().oldest_unread_us, kNeverUs);
  harness.Put("a", "1");
  harness.Put("b", "1");
  harness.Pass(40 * kSecond);
  harness.Sweep();
  const int64_t death_us = ReadAll(quick.get()).events.at(0).death_us;
  harness.Put("c", "1");
  harness.Pass(40 * kSecond);
  harness.Sweep();
  // The harness has a watcher of its own, which has read nothing either.
  harness.ReadEvents();
  NamespaceStatistics statistics = harness.Statistics();
  EXPECT_EQ(statistics.watch_pending, 4u);
  EXPECT_EQ(statistics.watch_lag, 3u);
  EXPECT_EQ(statistics.oldest_unread_us, death_us);
  ReadAll(slow.get());
  statistics = harness.Statistics();
  EXPECT_EQ(statistics.watch_lag, 1u);
  EXPECT_GT(statistics.oldest_unread_us, death_us);
  ReadAll(quick.get());
  EXPECT_EQ(harness.Statistics().watch_lag, 0u);
  EXPECT_EQ(harness.Statistics().oldest_unread_us, kNeverUs);
}

TEST(ReaperTest, CountsItsSweeps) {
  ManualClock clock(kStartUs);
  Reaper reaper(&clock);
  Registry registry(&clock, &reaper, RegistryLimits());
  const auto map = registry.Create("a", NamespaceOptions{});
  ASSERT_TRUE(map.ok());
  (*map)->Apply(Operation::Put("a", "1"), clock.NowUs());
  reaper.Flush();
  const uint64_t before = reaper.sweeps().total();
  clock.AdvanceTo(kStartUs + 60 * kSecond);
  reaper.Flush();
  EXPECT_GT(reaper.sweeps().total(), before);
  EXPECT_EQ((*map)->GetStatistics(clock.NowUs()).expired, 1u);
}

TEST(LimitReasonTest, EveryLimitHasItsOwn) {
  EXPECT_EQ(LimitReason(LimitHit::kMaxEntries), Reason::kMaxEntries);
  std::set<Reason> reasons;
  for (size_t hit = 1; hit < kLimitHits; ++hit) {
    const Reason reason = LimitReason(static_cast<LimitHit>(hit));
    EXPECT_TRUE(reasons.insert(reason).second) << ReasonName(reason);
  }
}

}  // namespace
}  // namespace timecache::server

#include "server/ops/engine_metrics.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/ops/metrics.h"
#include "server/ops/process_metrics.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kStartUs = 1'000 * kMicrosPerSecond;

class EngineMetricsTest : public ::testing::Test {
 protected:
  std::shared_ptr<TimeCacheMap> Create(const std::string& name,
                                       const NamespaceOptions& options = {}) {
    return registry_.Create(name, options).value();
  }
  void Put(TimeCacheMap* map, const std::string& key) {
    EXPECT_TRUE(
        map->Apply(Operation::Put(key, "v"), clock_.NowUs()).status.ok());
  }
  // What has died by now is published now.
  void Pass(int64_t seconds) {
    reaper_.Flush();
    clock_.AdvanceBy(seconds * kMicrosPerSecond);
    reaper_.Flush();
  }
  std::string Text(size_t max_namespaces = 100, size_t max_groups = 100) {
    const EngineMetrics metrics(&registries_, max_namespaces, max_groups);
    Metrics all;
    all.Add(&metrics);
    return all.Text();
  }

  ManualClock clock_{kStartUs};
  Reaper reaper_{&clock_};
  Registry registry_{&clock_, &reaper_, RegistryLimits()};
  Registries registries_{{&registry_, &reaper_, &clock_}};
};

TEST_F(EngineMetricsTest, TellWhatANamespaceHoldsAndDid) {
  const auto map = Create("a");
  Put(map.get(), "key-1");
  Put(map.get(), "key-2");
  map->Apply(Operation::Get("key-1"), clock_.NowUs());
  map->Apply(Operation::Get("none"), clock_.NowUs());
  map->Apply(Operation::Contains("none"), clock_.NowUs());
  map->Apply(Operation::Remove("key-2"), clock_.NowUs());
  const std::string text = Text();
  for (const char* line : {
           "timecache_entries{namespace=\"a\"} 1\n",
           "timecache_entry_bytes{namespace=\"a\"} 6\n",
           "timecache_live_buckets{namespace=\"a\"} 1\n",
           "timecache_bucket_width_seconds{namespace=\"a\"} 0.3\n",
           "timecache_puts_total{namespace=\"a\"} 2\n",
           "timecache_hits_total{namespace=\"a\"} 1\n",
           "timecache_misses_total{namespace=\"a\"} 2\n",
           "timecache_removals_total{namespace=\"a\"} 1\n",
           "timecache_namespaces 1\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("key-1")));
}

TEST_F(EngineMetricsTest, PartitionsHaveSamplesOfTheirOwn) {
  NamespaceOptions options;
  options.num_partitions = 2;
  const auto second = Create("a#1", options);
  Create("a", options);
  Create("b");
  Put(second.get(), "key");
  const std::string text = Text();
  for (const char* line :
       {"timecache_entries{namespace=\"a\",partition=\"0\"} 0\n",
        "timecache_entries{namespace=\"a\",partition=\"1\"} 1\n",
        "timecache_entries{namespace=\"b\"} 0\n",
        "timecache_expired_total{namespace=\"a\",partition=\"1\","
        "cause=\"expired\"} 0\n",
        "timecache_namespaces 2\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  // Beyond the bound they are as other namespaces.
  EXPECT_THAT(Text(1),
              HasSubstr("timecache_entries{namespace=\"_other\"} 1\n"));
}

TEST_F(EngineMetricsTest, TellWhatDiedAndWhy) {
  NamespaceOptions options;
  options.max_entries = 2;
  options.limit_policy = LimitPolicy::kEvictOldest;
  const auto map = Create("a", options);
  const auto cursor =
      map->Subscribe(ExpiryLog::Start::kNow, clock_.NowUs(), [] {});
  for (int i = 0; i < 3; ++i) Put(map.get(), absl::StrCat("e", i));
  Pass(1);
  map->Rotate(clock_.NowUs());
  Pass(1);
  Put(map.get(), "last");
  Pass(60);
  const std::string text = Text();
  for (const char* line : {
           "timecache_entries{namespace=\"a\"} 0\n",
           "timecache_expired_total{namespace=\"a\",cause=\"expired\"} 1\n",
           "timecache_expired_total{namespace=\"a\",cause=\"evicted\"} 1\n",
           "timecache_expired_total{namespace=\"a\",cause=\"rotated\"} 2\n",
           "timecache_lateness_seconds_count{namespace=\"a\"} 4\n",
           "timecache_watchers{namespace=\"a\"} 1\n",
           "timecache_watch_owed_total{namespace=\"a\"} 4\n",
           "timecache_watch_delivered_total{namespace=\"a\"} 0\n",
           "timecache_watch_lost_total{namespace=\"a\"} 0\n",
           "timecache_watch_left_total{namespace=\"a\"} 0\n",
           "timecache_watch_pending{namespace=\"a\"} 4\n",
           "timecache_watch_lag_events{namespace=\"a\"} 4\n",
           "timecache_log_events{namespace=\"a\"} 4\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  // One was evicted 62 s ago, or at the next tick.
  EXPECT_THAT(text, ContainsRegex("timecache_log_oldest_seconds\\{namespace="
                                  "\"a\"\\} (61\\.99+|62)\n"));
  EXPECT_THAT(text, ContainsRegex("timecache_watch_lag_seconds\\{namespace="
                                  "\"a\"\\} (61\\.99+|62)\n"));
  EXPECT_THAT(text, ContainsRegex("timecache_sweep_seconds_count [1-9]"));
}

// The clock jumps over the bucket's death by far more than its width.
TEST_F(EngineMetricsTest, TellHowLateDeathsWerePublished) {
  const auto map = Create("a");
  Put(map.get(), "a");
  Pass(60);
  const std::string text = Text();
  EXPECT_THAT(text,
              AllOf(HasSubstr("timecache_bound_violations_total{namespace="
                              "\"a\"} 1\n"),
                    HasSubstr("timecache_lateness_seconds_bucket{namespace="
                              "\"a\",le=\"8.388608\"} 0\n"),
                    HasSubstr("timecache_lateness_seconds_bucket{namespace="
                              "\"a\",le=\"+Inf\"} 1\n"),
                    ContainsRegex("timecache_lateness_seconds_sum\\{namespace="
                                  "\"a\"\\} 29\\.[0-9]+\n")));
}

TEST_F(EngineMetricsTest, TellWhatLimitsRefused) {
  NamespaceOptions options;
  options.max_entries = 1;
  const auto map = Create("a", options);
  Put(map.get(), "1");
  EXPECT_THAT(Text(), Not(HasSubstr("timecache_refused_total{")));
  map->Apply(Operation::Put("2", "v"), clock_.NowUs());
  EXPECT_THAT(Text(), HasSubstr("timecache_refused_total{namespace=\"a\","
                                "reason=\"MAX_ENTRIES\"} 1\n"));
}

TEST_F(EngineMetricsTest, TellWhatGroupsDo) {
  const auto map = Create("a");
  const auto group = map->groups().Create("g", {}, ExpiryLog::Start::kEarliest,
                                          clock_.NowUs());
  ASSERT_TRUE(group.ok());
  Put(map.get(), "1");
  Put(map.get(), "2");
  Pass(60);
  const auto member = (*group)->Join(10, [] {});
  const auto chunk = member->Take(clock_.NowUs(), 1, 1 << 20);
  ASSERT_EQ(chunk.deliveries.size(), 1u);
  Settlement ack = {chunk.deliveries[0].event_id, 1, SettleAction::kAck};
  ack.group_id = chunk.deliveries[0].group_id;
  SettleResult result;
  ASSERT_TRUE(
      map->groups().Settle("g", {&ack, 1}, clock_.NowUs(), {&result, 1}).ok());
  EXPECT_TRUE(result.status.ok());
  const std::string text = Text();
  const std::string of = "{namespace=\"a\",group=\"g\"} ";
  EXPECT_THAT(text, HasSubstr("timecache_group_members" + of + "1\n"));
  EXPECT_THAT(text, HasSubstr("timecache_group_events_total" + of + "2\n"));
  EXPECT_THAT(text,
              HasSubstr("timecache_group_unresponsive_members" + of + "0\n"));
  EXPECT_THAT(text, HasSubstr("timecache_group_dead_letters_dropped_total" +
                              of + "0\n"));
  EXPECT_THAT(text, HasSubstr("timecache_group_backlog" + of + "1\n"));
  EXPECT_THAT(text, HasSubstr("timecache_group_in_flight" + of + "0\n"));
  EXPECT_THAT(text, HasSubstr("timecache_group_delivered_total" + of + "1\n"));
  EXPECT_THAT(text, HasSubstr("timecache_group_acked_total" + of + "1\n"));
  // It died 30 s after the puts, within a bucket.
  EXPECT_THAT(text, ContainsRegex("timecache_group_lag_seconds\\{namespace="
                                  "\"a\",group=\"g\"\\} (29\\.[0-9]+|30)\n"));
}

TEST_F(EngineMetricsTest, NamespacesBeyondTheBoundAreAddedUp) {
  for (const char* name : {"a", "b", "c", "d"}) {
    const auto map = Create(name);
    Put(map.get(), "1");
    ASSERT_TRUE(map->groups()
                    .Create("g", {}, ExpiryLog::Start::kNow, clock_.NowUs())
                    .ok());
  }
  const std::string text = Text(2, 3);
  EXPECT_THAT(text, HasSubstr("timecache_entries{namespace=\"a\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("timecache_entries{namespace=\"b\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("timecache_entries{namespace=\"_other\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("timecache_entries{namespace=\"c\"}")));
  EXPECT_THAT(text, HasSubstr("timecache_namespaces 4\n"));
  EXPECT_THAT(text, HasSubstr("timecache_group_members{namespace=\"c\","
                              "group=\"g\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("timecache_group_members{namespace=\"_other\","
                              "group=\"_other\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("timecache_group_members{namespace=\"d\"")));
}

TEST(MetricsTest, NumbersOfOneNameAreOneFamily) {
  Metrics metrics;
  metrics.Add({"a", "Of a."}, [] { return 1; }, {{"x", "1"}});
  metrics.Add({"a", "Of a."}, [] { return 2; }, {{"x", "2"}});
  metrics.Add({"b_total", "Of b."}, [] { return 3; });
  EXPECT_EQ(metrics.Text(),
            "# HELP a Of a.\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n"
            "# HELP b_total Of b.\n# TYPE b_total counter\nb_total 3\n");
}

TEST(ProcessMetricsTest, TellWhatTheKernelKnows) {
  const ProcessMetrics process;
  Metrics metrics;
  metrics.Add(&process);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, ContainsRegex("\nprocess_cpu_seconds_total [0-9]"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_resident_memory_bytes [1-9]"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_virtual_memory_bytes [1-9]"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_threads [1-9]"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_open_fds [1-9]"));
  EXPECT_THAT(text, ContainsRegex("\nprocess_max_fds [1-9]"));
  // After 2020.
  EXPECT_THAT(text, ContainsRegex("\nprocess_start_time_seconds 1[6-9][0-9.]+"
                                  "(e\\+09)?\n"));
}

}  // namespace
}  // namespace timecache::server

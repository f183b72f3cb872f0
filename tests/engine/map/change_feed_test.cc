// What watches read of puts, renewals and removals: what each operation changes
// is checked beside the reference model.

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/base/memory_budget.h"
#include "server/base/memory_reclaimer.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/reaper.h"
#include "tests/support/await.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using CursorPtr = std::unique_ptr<ChangeFeed::Cursor>;

NamespaceOptions KeepsChanges() {
  NamespaceOptions options = Tens();
  options.change_retention_us = 60 * kSecond;
  return options;
}

struct ReadChanges {
  // "put a=1", "renewed a", "removed a"
  std::vector<std::string> texts;
  std::vector<int64_t> times_us;
  std::vector<int> batch_sizes;
  EventChunk last;
  uint64_t lost = 0;
};

ReadChanges ReadAll(const CursorPtr& cursor) {
  static constexpr const char* kKinds[] = {"", "put", "renewed", "removed"};
  ReadChanges read;
  for (bool more = true; more;) {
    EventChunk chunk = cursor->Read(1 << 20);
    for (const auto& batch : chunk.batches) {
      read.batch_sizes.push_back(batch->size());
      for (int i = 0; i < batch->size(); ++i) {
        const ExpiredEvent change = batch->event(i);
        std::string& text = read.texts.emplace_back(
            absl::StrCat(kKinds[static_cast<size_t>(change.change)], " ",
                         std::string(change.key)));
        if (!change.value.empty() && change.value.size() < 100) {
          absl::StrAppend(&text, "=", std::string(change.value));
        }
        read.times_us.push_back(change.put_us);
      }
    }
    read.lost += chunk.lost;
    more = chunk.more;
    read.last = std::move(chunk);
  }
  return read;
}

class ChangeFeedTest : public ::testing::Test {
 protected:
  CursorPtr Watch(LogStart start = LogStart::kNow) {
    auto cursor =
        harness_.map().WatchChanges(start, nullptr, harness_.now_us(), [] {});
    EXPECT_TRUE(cursor.ok()) << cursor.status();
    return *std::move(cursor);
  }
  absl::StatusOr<CursorPtr> Resume(const LogPoint& point) {
    return harness_.map().WatchChanges(LogStart::kNow, &point,
                                       harness_.now_us(), [] {});
  }

  MapHarness harness_{KeepsChanges()};
};

TEST_F(ChangeFeedTest, AWatchFromNowReadsWhatChangesAfterIt) {
  harness_.Put("a", "1");
  const CursorPtr cursor = Watch();
  harness_.Put("b", "2");
  harness_.Apply(Operation::Touch("a"));
  harness_.Apply(Operation::Remove("b"));
  harness_.map().Advance(harness_.now_us());
  EXPECT_THAT(ReadAll(cursor).texts, ::testing::UnorderedElementsAre(
                                         "put b=2", "renewed a", "removed b"));
  EXPECT_THAT(ReadAll(Watch(LogStart::kEarliest)).texts,
              ::testing::UnorderedElementsAre("put a=1", "put b=2", "renewed a",
                                              "removed b"));
}

TEST_F(ChangeFeedTest, AChangeOfTheMomentOfAWatermarkIsAMicrosecondLater) {
  const CursorPtr cursor = Watch();
  harness_.Pass(1);
  harness_.Put("a", "1");
  harness_.map().Advance(harness_.now_us());
  harness_.Put("a", "2");
  EXPECT_EQ(ReadAll(cursor).last.watermark_us, harness_.now_us());
  harness_.map().Advance(harness_.now_us());
  const ReadChanges second = ReadAll(cursor);
  EXPECT_THAT(second.texts, ElementsAre("put a=2"));
  EXPECT_THAT(second.times_us, ElementsAre(harness_.now_us() + 1));
}

// Its watermark is before all that it has not read.
TEST_F(ChangeFeedTest, AChunkThatIsNotTheLastHasAnEarlierWatermark) {
  const CursorPtr cursor = Watch();
  const int64_t begin_us = harness_.now_us();
  for (int i = 0; i < 3; ++i) {
    harness_.Pass(kSecond);
    harness_.Put("a", absl::StrCat(i));
    harness_.map().Advance(harness_.now_us());
  }
  for (int i = 0; i < 3; ++i) {
    const EventChunk chunk = cursor->Read(1);
    ASSERT_EQ(chunk.batches.size(), 1u);
    EXPECT_EQ(chunk.watermark_us, begin_us + (i + 1) * kSecond);
    EXPECT_EQ(chunk.more, i < 2);
  }
}

TEST_F(ChangeFeedTest, ResumesAtAPointAndCountsWhatIsLost) {
  NamespaceOptions options = KeepsChanges();
  options.change_retention_bytes = kMinRetentionBytes;
  harness_.Update(options);
  const LogPoint point = Watch()->Read(1).point;
  const std::string large(400'000, 'x');
  for (int i = 0; i < 5; ++i) harness_.Put("a", large);
  harness_.Put("a", "last");
  auto cursor = Resume(point);
  ASSERT_TRUE(cursor.ok()) << cursor.status();
  const ReadChanges read = ReadAll(*cursor);
  EXPECT_EQ(read.lost, 3u);
  EXPECT_THAT(read.texts, ElementsAre("put a", "put a", "put a=last"));
  const NamespaceStatistics statistics = harness_.Statistics();
  EXPECT_EQ(statistics.changes_retained, 3u);
  EXPECT_GT(statistics.changes_retained_bytes, 800'000);
  EXPECT_EQ(statistics.watchers, 2);
}

TEST_F(ChangeFeedTest, EndsWhereChangesAreNoLongerKept) {
  const CursorPtr cursor = Watch();
  const LogPoint point = cursor->Read(1).point;
  harness_.Put("a", "1");
  harness_.Update(Tens());
  harness_.Put("a", "2");
  const ReadChanges read = ReadAll(cursor);
  EXPECT_THAT(read.texts, ElementsAre("put a=1"));
  EXPECT_TRUE(read.last.closed);
  EXPECT_EQ(ReasonOf(harness_.map().CheckKeepsChanges(cursor.get())),
            Reason::kNoChanges);
  EXPECT_EQ(ReasonOf(Resume(point).status()), Reason::kNoChanges);
  EXPECT_EQ(harness_.Statistics().changes_retained, 0u);

  harness_.Update(KeepsChanges());
  EXPECT_EQ(ReasonOf(Resume(point).status()), Reason::kLogChanged);
  EXPECT_EQ(ReasonOf(harness_.map().CheckKeepsChanges(cursor.get())),
            Reason::kNoChanges);
  EXPECT_THAT(ReadAll(Watch(LogStart::kEarliest)).texts, IsEmpty());
}

// The largest has a batch of its own, and no buffer grows beyond its share.
TEST_F(ChangeFeedTest, AFullBufferBecomesABatch) {
  const CursorPtr cursor = Watch();
  constexpr int64_t kValueBytes = 1'000;
  const std::string value(kValueBytes, 'x');
  for (int i = 0; i < 1'000; ++i) harness_.Put("a", value);
  harness_.Put("a", std::string(NamespaceOptions().max_value_bytes, 'y'));
  const ReadChanges read = ReadAll(cursor);
  for (const int size : read.batch_sizes) {
    EXPECT_LE((size - 1) * kValueBytes,
              static_cast<int64_t>(ChangeFeed::kMaxBufferBytes) /
                  NamespaceOptions().num_shards);
  }
  harness_.map().Advance(harness_.now_us());
  EXPECT_EQ(read.texts.size() + ReadAll(cursor).texts.size(), 1'001u);
}

TEST_F(ChangeFeedTest, IsDueAtOnceOnlyForAReader) {
  int64_t due_us = kNeverUs;
  harness_.map().SetSchedule([&](int64_t us) { due_us = us; });
  const auto due = [&] { return due_us - harness_.now_us(); };
  harness_.map().NextDueUs(harness_.now_us());
  harness_.Put("a", "1");
  EXPECT_EQ(due(), ChangeFeed::kIdleFlushUs);
  const CursorPtr cursor = Watch();
  harness_.map().NextDueUs(harness_.now_us());
  harness_.Put("a", "2");
  EXPECT_EQ(due(), 0);
  EXPECT_EQ(harness_.map().NextDueUs(harness_.now_us()), harness_.now_us());
  harness_.map().Advance(harness_.now_us());
  EXPECT_GT(harness_.map().NextDueUs(harness_.now_us()), harness_.now_us());
}

TEST_F(ChangeFeedTest, WakesAWaitingReaderOnceAndOnlyForChanges) {
  int wakes = 0;
  const auto cursor = *harness_.map().WatchChanges(
      LogStart::kNow, nullptr, harness_.now_us(), [&] { ++wakes; });
  cursor->Read(1 << 20);
  harness_.map().Advance(harness_.now_us());
  EXPECT_EQ(wakes, 0);
  for (int i = 0; i < 100; ++i) harness_.Put(absl::StrCat(i), "v");
  EXPECT_EQ(wakes, 0) << "under a shard's lock";
  harness_.map().Advance(harness_.now_us());
  EXPECT_EQ(wakes, 1);
}

TEST_F(ChangeFeedTest, RetainsForAsLongAsTheOptionSays) {
  harness_.Put("a", "1");
  harness_.Sweep();
  harness_.Pass(60 * kSecond - 1);
  harness_.Sweep();
  EXPECT_EQ(harness_.Statistics().changes_retained, 1u);
  EXPECT_LE(harness_.map().NextDueUs(harness_.now_us()), harness_.now_us() + 1);
  harness_.Pass(1);
  harness_.Sweep();
  EXPECT_EQ(harness_.Statistics().changes_retained, 0u);
  EXPECT_EQ(harness_.Statistics().changes_retained_bytes, 0);
}

TEST_F(ChangeFeedTest, ChangesAreDroppedBeforeEventsForTheirMemory) {
  const CursorPtr cursor = Watch();
  const std::string value(100'000, 'x');
  for (int i = 0; i < 100; ++i) harness_.Put(absl::StrCat(i), value);
  harness_.Pass(12 * kSecond);
  harness_.Sweep();
  MemoryBudget& memory = MemoryBudget::Process();
  memory.SetLimit(memory.used_bytes());
  for (int i = 0; i < 100; ++i) MemoryReclaimer::Process().Step();
  const NamespaceStatistics statistics = harness_.Statistics();
  memory.SetLimit(0);
  EXPECT_EQ(statistics.events_retained, 100u);
  EXPECT_EQ(statistics.events_reclaimed, 0u);
  const ReadChanges read = ReadAll(cursor);
  EXPECT_GT(read.lost, 0u);
  EXPECT_EQ(read.lost + read.texts.size(), 100u);
}

TEST_F(ChangeFeedTest, AnAtomicBatchIsReadTogetherBehindWhatItsShardsHad) {
  const CursorPtr cursor = Watch();
  std::vector<Operation> ops;
  std::vector<std::string> keys;
  for (int i = 0; i < 100; ++i) keys.push_back(absl::StrCat("k", i));
  for (const std::string& key : keys) {
    harness_.Put(key, "before");
    ops.push_back(Operation::Put(key, "atomic"));
  }
  std::vector<Result> results(ops.size());
  ASSERT_TRUE(harness_.map()
                  .ApplyAtomic(ops, harness_.now_us(), absl::MakeSpan(results))
                  .ok());
  for (const std::string& key : keys) harness_.Put(key, "after");
  const int64_t due_us = harness_.map().NextDueUs(harness_.now_us());
  EXPECT_EQ(due_us, harness_.now_us());
  harness_.map().Advance(harness_.now_us());
  const ReadChanges read = ReadAll(cursor);
  EXPECT_THAT(read.batch_sizes, ::testing::Contains(100));
  std::map<std::string, int> next;
  const absl::string_view values[] = {"=before", "=atomic", "=after"};
  for (const std::string& text : read.texts) {
    const size_t value = text.find('=');
    const std::string key = text.substr(4, value - 4);
    ASSERT_LT(next[key], 3) << text;
    EXPECT_EQ(text.substr(value), values[next[key]++]) << text;
  }
  EXPECT_EQ(read.texts.size(), 300u);
}

TEST_F(ChangeFeedTest, AnAtomicBatchAloneIsDue) {
  const CursorPtr cursor = Watch();
  const Operation ops[] = {Operation::Put("a", "1"), Operation::Put("b", "2")};
  Result results[2];
  int64_t due_us = kNeverUs;
  harness_.map().SetSchedule([&](int64_t us) { due_us = us; });
  harness_.map().NextDueUs(harness_.now_us());
  ASSERT_TRUE(harness_.map()
                  .ApplyAtomic(ops, harness_.now_us(), absl::MakeSpan(results))
                  .ok());
  EXPECT_EQ(due_us, harness_.now_us());
  EXPECT_EQ(harness_.map().NextDueUs(harness_.now_us()), harness_.now_us());
  harness_.map().Advance(harness_.now_us());
  EXPECT_GT(harness_.map().NextDueUs(harness_.now_us()), harness_.now_us());
  EXPECT_THAT(ReadAll(cursor).texts,
              ::testing::UnorderedElementsAre("put a=1", "put b=2"));
}

// Its values no longer fit into a batch of the log, and still have one time.
TEST_F(ChangeFeedTest, AnAtomicBatchBeyondOneOfTheLogIsCut) {
  const std::string large(400'000, 'x');
  std::vector<Operation> ops;
  const std::vector<std::string> keys = {"a", "b", "c", "d"};
  for (const std::string& key : keys) {
    harness_.Put(key, large);
    ops.push_back(Operation::Append(key, "y"));
  }
  const CursorPtr cursor = Watch();
  std::vector<Result> results(ops.size());
  ASSERT_TRUE(harness_.map()
                  .ApplyAtomic(ops, harness_.now_us(), absl::MakeSpan(results))
                  .ok());
  harness_.map().Advance(harness_.now_us());
  const ReadChanges read = ReadAll(cursor);
  EXPECT_THAT(read.batch_sizes, ElementsAre(2, 2));
  EXPECT_THAT(read.times_us, ::testing::Each(harness_.now_us() + 1));
}

// While maps advance, and others put the same keys.
TEST(ChangeFeedThreadsTest, NoChunkHasAPartOfAnAtomicBatch) {
  constexpr int kKeys = 32;
  constexpr int kBatches = 1'000;
  NamespaceOptions options = KeepsChanges();
  options.num_shards = 64;
  const SystemClock clock;
  Reaper reaper(&clock);
  const auto map =
      std::make_shared<TimeCacheMap>("map", options, nullptr, clock.NowUs());
  reaper.Add(map);
  auto cursor =
      *map->WatchChanges(LogStart::kNow, nullptr, clock.NowUs(), [] {});
  std::vector<std::string> keys;
  for (int k = 0; k < kKeys; ++k) keys.push_back(absl::StrCat("k", k));
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < kBatches; ++i) {
        const std::string value = absl::StrCat(w, ".", i);
        std::vector<Operation> ops;
        for (const std::string& key : keys) {
          ops.push_back(Operation::Put(key, value));
        }
        std::vector<Result> results(ops.size());
        map->ApplyAtomic(ops, clock.NowUs(), absl::MakeSpan(results))
            .IgnoreError();
      }
    });
  }
  writers.emplace_back([&] {
    for (int i = 0; i < kBatches; ++i) {
      map->Apply(Operation::Touch(keys[static_cast<size_t>(i % kKeys)]),
                 clock.NowUs());
    }
  });
  size_t puts = 0;
  const auto read = [&] {
    for (bool more = true; more;) {
      const EventChunk chunk = cursor->Read(1);
      EXPECT_EQ(chunk.lost, 0u);
      // By value: how many, and when.
      std::map<std::string, std::pair<int, int64_t>> seen;
      for (const auto& batch : chunk.batches) {
        for (int i = 0; i < batch->size(); ++i) {
          const ExpiredEvent change = batch->event(i);
          if (change.change != ChangeKind::kPut) continue;
          auto& [count, time_us] = seen[std::string(change.value)];
          if (++count == 1) time_us = change.put_us;
          EXPECT_EQ(change.put_us, time_us);
          ++puts;
        }
      }
      for (const auto& [value, each] : seen) EXPECT_EQ(each.first, kKeys);
      more = chunk.more;
    }
    return puts == size_t{2} * kBatches * kKeys;
  };
  EXPECT_TRUE(test::Await(read));
  for (std::thread& writer : writers) writer.join();
  reaper.Remove(map.get());
}

// One writer for each key; all through the same buffers.
TEST(ChangeFeedThreadsTest, EachChangeComesOnceInTheOrderOfItsKey) {
  constexpr int kWriters = 4;
  constexpr int kPuts = 3'000;
  NamespaceOptions options = KeepsChanges();
  options.num_shards = 2;
  const SystemClock clock;
  Reaper reaper(&clock);
  const auto map =
      std::make_shared<TimeCacheMap>("map", options, nullptr, clock.NowUs());
  reaper.Add(map);
  std::atomic<int> wakes = 0;
  auto cursor = *map->WatchChanges(LogStart::kNow, nullptr, clock.NowUs(),
                                   [&] { ++wakes; });
  std::vector<std::thread> writers;
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < kPuts; ++i) {
        const std::string value = absl::StrCat(i);
        map->Apply(Operation::Put(absl::StrCat(w), value), clock.NowUs());
      }
    });
  }
  std::map<std::string, int> next;
  int64_t watermark_us = 0;
  const auto read = [&] {
    const ReadChanges changes = ReadAll(cursor);
    for (size_t i = 0; i < changes.texts.size(); ++i) {
      const std::string key = changes.texts[i].substr(4, 1);
      EXPECT_EQ(changes.texts[i], absl::StrCat("put ", key, "=", next[key]++));
      EXPECT_GT(changes.times_us[i], watermark_us);
    }
    EXPECT_EQ(changes.lost, 0u);
    watermark_us = changes.last.watermark_us;
    int sum = 0;
    for (const auto& [key, count] : next) sum += count;
    return sum == kWriters * kPuts;
  };
  // Without any heartbeat.
  EXPECT_TRUE(test::Await(read));
  for (std::thread& writer : writers) writer.join();
  EXPECT_GT(wakes, 0);
  reaper.Remove(map.get());
}

}  // namespace
}  // namespace timecache::server

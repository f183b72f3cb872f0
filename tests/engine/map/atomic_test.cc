// Atomic batches: all operations or none, and nobody sees a part.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/map/map_replay.h"
#include "tests/support/effort.h"
#include "tests/support/engine/crash_map.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;

Operation OnlyIf(Operation op, Condition condition, uint64_t version = 0) {
  op.condition = condition;
  op.if_version = version;
  return op;
}

std::vector<Result> ApplyAtomic(MapHarness* harness,
                                const std::vector<Operation>& ops) {
  std::vector<Result> results(ops.size());
  const absl::Status status = harness->map().ApplyAtomic(
      ops, harness->now_us(), absl::MakeSpan(results));
  EXPECT_TRUE(status.ok()) << status;
  return results;
}

std::vector<std::string> AtomicReasons(const std::vector<Result>& results) {
  std::vector<std::string> reasons;
  for (const Result& result : results) {
    reasons.emplace_back(result.status.ok() ? "OK"
                                            : ReasonNameOf(result.status));
  }
  return reasons;
}

TEST(AtomicTest, AppliesOperationsOfAllKinds) {
  MapHarness harness(Tens());
  harness.Put("removed", "v");
  harness.Put("log", "a");
  harness.Put("seen", "v");
  const uint64_t seen = harness.Put("watched", "v").version;
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("one", 1, {}).ok());
  const std::vector<Result> results = ApplyAtomic(
      &harness,
      {Operation::Put("put", "p"), Operation::Get("seen"),
       Operation::Remove("removed"),
       OnlyIf(Operation::Contains("watched"), Condition::kIfVersion, seen),
       Operation::Touch("missing"), Operation::Append("log", "b"),
       Operation::Combine("count", Combination::kAdd, 3),
       Operation::Gather("gather", &gathering, "part")});
  for (const Result& result : results) EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(results[1].entry.value, "v");
  EXPECT_TRUE(results[2].found);
  EXPECT_FALSE(results[4].found);
  EXPECT_EQ(results[5].number, 2);
  EXPECT_EQ(results[6].number, 3);
  EXPECT_TRUE(results[7].removed);
  EXPECT_EQ(harness.Get("put"), "p");
  EXPECT_EQ(harness.Get("log"), "ab");
  EXPECT_EQ(harness.Get("count"), "3");
  EXPECT_EQ(harness.Get("removed"), "(none)");
  EXPECT_EQ(harness.Entries(), 5);
}

TEST(AtomicTest, WhereOneFailsNothingIsChanged) {
  MapHarness harness(Tens());
  const uint64_t version = harness.Put("a", "1").version;
  harness.Put("b", "x");
  harness.Put("log", "l");
  const int64_t bytes = harness.Bytes();
  const NamespaceStatistics before = harness.Statistics();
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("one", 1, {}).ok());
  gathering.remember_us = kSecond;
  EXPECT_THAT(
      AtomicReasons(ApplyAtomic(
          &harness, {Operation::Put("a", "2"), Operation::Put("new", "n"),
                     OnlyIf(Operation::Put("b", "y"), Condition::kIfAbsent),
                     Operation::Append("log", "more"), Operation::Remove("a2"),
                     Operation::Combine("b2", Combination::kAdd, 1),
                     Operation::Touch("x"),
                     Operation::Gather("gather", &gathering, "part")})),
      ElementsAre("NOT_APPLIED", "NOT_APPLIED", "KEY_EXISTS", "NOT_APPLIED",
                  "NOT_APPLIED", "NOT_APPLIED", "NOT_APPLIED", "NOT_APPLIED"));
  EXPECT_EQ(harness.Apply(Operation::Get("a")).entry.version, version);
  EXPECT_EQ(harness.Get("log"), "l");
  EXPECT_EQ(harness.Bytes(), bytes);
  EXPECT_EQ(harness.Entries(), 3);
  EXPECT_EQ(harness.Statistics().operations.puts, before.operations.puts);
  EXPECT_EQ(harness.Statistics().operations.appends, 0u);
  // Not remembered either.
  EXPECT_TRUE(harness.Apply(Operation::Gather("gather", &gathering, "part"))
                  .status.ok());
}

TEST(AtomicTest, EachThatFailsSaysWhy) {
  MapHarness harness(Tens());
  harness.Put("text", "no number");
  EXPECT_THAT(AtomicReasons(ApplyAtomic(
                  &harness, {Operation::Combine("text", Combination::kAdd, 1),
                             Operation::Put("ok", "v"),
                             OnlyIf(Operation::Contains("none"),
                                    Condition::kIfPresent)})),
              ElementsAre("NOT_A_NUMBER", "NOT_APPLIED", "KEY_NOT_FOUND"));
  // What no map takes is found before the rest is looked at.
  EXPECT_THAT(AtomicReasons(ApplyAtomic(
                  &harness, {Operation::Put("ok", "v"), Operation::Get("")})),
              ElementsAre("NOT_APPLIED", "INVALID_FIELD"));
}

TEST(AtomicTest, TwoOperationsOfOneKeyAreRefusedAsAWhole) {
  MapHarness harness(Tens());
  const std::vector<Operation> ops = {
      Operation::Put("a", "1"), Operation::Put("b", "1"), Operation::Get("a")};
  std::vector<Result> results(ops.size());
  const absl::Status status =
      harness.map().ApplyAtomic(ops, harness.now_us(), absl::MakeSpan(results));
  EXPECT_EQ(FieldOf(status), "operations");
  EXPECT_EQ(harness.Entries(), 0);
}

TEST(AtomicTest, AConditionOfAContainsHoldsAlone) {
  MapHarness harness(Tens());
  const Operation absent =
      OnlyIf(Operation::Contains("a"), Condition::kIfAbsent);
  EXPECT_FALSE(harness.Apply(absent).found);
  harness.Put("a", "v");
  EXPECT_EQ(ReasonOf(harness.Apply(absent).status), Reason::kKeyExists);
}

NamespaceOptions AtomicLimits(int64_t max_entries, int64_t max_bytes,
                              LimitPolicy policy) {
  NamespaceOptions options = Tens();
  options.max_entries = max_entries;
  options.max_bytes = max_bytes;
  options.limit_policy = policy;
  return options;
}

TEST(AtomicTest, ItsSumMeetsTheLimits) {
  MapHarness harness(AtomicLimits(3, 0, LimitPolicy::kReject));
  harness.Put("a", "v");
  harness.Put("b", "v");
  EXPECT_THAT(AtomicReasons(ApplyAtomic(&harness, {Operation::Put("c", "v"),
                                                   Operation::Put("d", "v")})),
              ElementsAre("NOT_APPLIED", "MAX_ENTRIES"));
  EXPECT_EQ(harness.Entries(), 2);
  EXPECT_EQ(
      harness.Statistics().refused[static_cast<size_t>(LimitHit::kMaxEntries)],
      1u);
  // The removal makes room.
  EXPECT_THAT(AtomicReasons(ApplyAtomic(
                  &harness, {Operation::Put("c", "v"), Operation::Put("d", "v"),
                             Operation::Remove("a")})),
              ElementsAre("OK", "OK", "OK"));
  EXPECT_EQ(harness.Entries(), 3);
  EXPECT_EQ(harness.map().CountedSize().entries, 3);
}

TEST(AtomicTest, ItsBytesMeetTheLimits) {
  Usage server(0, 100);
  MapHarness harness(AtomicLimits(0, 0, LimitPolicy::kReject), kStartUs,
                     &server);
  harness.Put("a", std::string(59, 'v'));
  EXPECT_THAT(AtomicReasons(ApplyAtomic(
                  &harness, {Operation::Put("b", std::string(20, 'v')),
                             Operation::Put("c", std::string(20, 'v')),
                             Operation::Get("a")})),
              ElementsAre("NOT_APPLIED", "SERVER_MAX_BYTES", "NOT_APPLIED"));
  EXPECT_EQ(server.bytes(), 60);
  EXPECT_THAT(AtomicReasons(ApplyAtomic(
                  &harness, {Operation::Put("b", std::string(38, 'v')),
                             Operation::Put("a", std::string(59, 'w')),
                             Operation::Get("c")})),
              ElementsAre("OK", "OK", "OK"));
  EXPECT_EQ(server.bytes(), 99);
  EXPECT_EQ(server.entries(), 2);
}

TEST(AtomicTest, EvictsAsSinglePutsDo) {
  NamespaceOptions options = AtomicLimits(10, 0, LimitPolicy::kEvictOldest);
  MapHarness harness(options);
  for (int i = 0; i < 10; ++i) {
    harness.Pass(kSecond / 2);
    harness.Put(absl::StrCat("old", i), "v");
  }
  std::vector<std::string> keys;
  std::vector<Operation> ops;
  for (int i = 0; i < 6; ++i) keys.push_back(absl::StrCat("new", i));
  for (const std::string& key : keys) ops.push_back(Operation::Put(key, "v"));
  for (const Result& result : ApplyAtomic(&harness, ops)) {
    EXPECT_TRUE(result.status.ok()) << result.status;
  }
  for (const std::string& key : keys) EXPECT_TRUE(harness.Contains(key));
  EXPECT_TRUE(harness.Contains("old9"));
  EXPECT_FALSE(harness.Contains("old0"));
  EXPECT_LE(harness.Entries(), 10);
  // More than all there may be evicts nothing.
  const int64_t entries = harness.Entries();
  for (int i = 6; i < 11; ++i) keys.push_back(absl::StrCat("new", i));
  ops.clear();
  for (const std::string& key : keys) ops.push_back(Operation::Put(key, "v"));
  EXPECT_THAT(AtomicReasons(ApplyAtomic(&harness, ops)),
              testing::Contains("MAX_ENTRIES"));
  EXPECT_EQ(harness.Entries(), entries);
}

TEST(AtomicTest, WhatHasNoRoomInTheAnswerAppliesNothing) {
  NamespaceOptions options = Tens();
  options.max_value_bytes = kMaxValueBytesLimit;
  MapHarness harness(options);
  harness.Put("a", std::string(ResponseBudget::kMaxBytes - 1, 'v'));
  harness.Put("b", "22");
  Operation remove = Operation::Remove("b");
  remove.return_previous = true;
  EXPECT_THAT(AtomicReasons(ApplyAtomic(&harness, {Operation::Get("a"), remove,
                                                   Operation::Put("c", "v")})),
              ElementsAre("NOT_APPLIED", "MAX_RESPONSE_BYTES", "NOT_APPLIED"));
  EXPECT_EQ(harness.Entries(), 2);
}

// It is moved before, and is not otherwise changed.
TEST(AtomicTest, ALargeValueThatOutgrowsItsRoomIsAppendedTo) {
  NamespaceOptions options = Tens();
  options.max_value_bytes = kMaxValueBytesLimit;
  MapHarness harness(options);
  const std::string large(1 << 20, 'v');
  const uint64_t version = harness.Put("a", large).version;
  harness.Put("b", large);
  const int64_t bytes = harness.Bytes();
  EXPECT_THAT(
      AtomicReasons(ApplyAtomic(
          &harness, {Operation::Append("a", "!"),
                     OnlyIf(Operation::Contains("b"), Condition::kIfAbsent)})),
      ElementsAre("NOT_APPLIED", "KEY_EXISTS"));
  EXPECT_EQ(harness.Apply(Operation::Get("a")).entry.version, version);
  EXPECT_EQ(harness.Bytes(), bytes);
  EXPECT_THAT(
      AtomicReasons(ApplyAtomic(&harness, {Operation::Append("a", "!"),
                                           Operation::Append("b", "?")})),
      ElementsAre("OK", "OK"));
  EXPECT_EQ(harness.Get("a"), large + "!");
  EXPECT_EQ(harness.Get("b"), large + "?");
  EXPECT_EQ(harness.Bytes(), bytes + 2);
  harness.Pass(20 * kSecond);
  EXPECT_EQ(harness.ReadEvents().events.size(), 2u);
}

class AtomicIdTest : public ::testing::Test {
 protected:
  static constexpr int kIds = 1'000;

  static NamespaceOptions Options() {
    NamespaceOptions options = Tens();
    options.num_shards = 1;
    options.idempotency_window_us = 5 * kSecond;
    options.idempotency_max_ids = kIds;
    return options;
  }
  static Operation Add(absl::string_view key, absl::string_view id) {
    Operation op = Operation::Combine(key, Combination::kAdd, 1);
    op.SetId(id);
    return op;
  }

  MapHarness harness_{Options()};
};

TEST_F(AtomicIdTest, ARepetitionGetsTheFirstAnswers) {
  const std::vector<Operation> ops = {
      Add("n", "1"), Add("m", "1"),
      OnlyIf(Operation::Contains("stop"), Condition::kIfAbsent)};
  ApplyAtomic(&harness_, ops);
  harness_.Put("stop", "v");
  harness_.Put("n", "7");
  const std::vector<Result> again = ApplyAtomic(&harness_, ops);
  EXPECT_THAT(AtomicReasons(again), ElementsAre("OK", "OK", "OK"));
  EXPECT_EQ(again[0].number, 1);
  EXPECT_TRUE(again[2].found) << "as it is now";
  EXPECT_EQ(harness_.Get("n"), "7");
  EXPECT_EQ(harness_.Get("m"), "1");
}

TEST_F(AtomicIdTest, AFailureIsNotRemembered) {
  const std::vector<Operation> ops = {
      Add("n", "1"), OnlyIf(Operation::Contains("stop"), Condition::kIfAbsent)};
  harness_.Put("stop", "v");
  EXPECT_THAT(AtomicReasons(ApplyAtomic(&harness_, ops)),
              ElementsAre("NOT_APPLIED", "KEY_EXISTS"));
  harness_.Apply(Operation::Remove("stop"));
  EXPECT_EQ(ApplyAtomic(&harness_, ops)[0].number, 1);
}

// The new answers push the old one out while they are remembered.
TEST_F(AtomicIdTest, AnAnswerThatTheBatchPushesOutIsStillGiven) {
  ApplyAtomic(&harness_, {Add("old", "1")});
  for (int i = 0; i < kIds - 1; ++i) {
    harness_.Apply(Add("other", absl::StrCat(i)));
  }
  std::vector<Operation> ops;
  const std::vector<std::string> keys = {"a", "b", "c", "d"};
  for (const std::string& key : keys) ops.push_back(Add(key, "1"));
  ops.push_back(Add("old", "1"));
  EXPECT_EQ(ApplyAtomic(&harness_, ops).back().number, 1);
  EXPECT_EQ(harness_.Get("old"), "1");
}

// Where a rebuild reads a log that lacks records.
TEST(AtomicReplayTest, WhereItsAppendHasNoEntryNothingOfABatchIsApplied) {
  TimeCacheMap map("map", Tens(), nullptr, kStartUs, {.journaled = true});
  MapReplay replay(&map);
  replay.AllowLosses();
  Change store;
  store.record.key = "stored";
  store.record.version = 7;
  store.record.put_us = store.record.create_us = store.at_us = kStartUs;
  store.record.life_us = 10 * kSecond;
  store.death_us = kStartUs + 10 * kSecond;
  store.more_of_batch = true;
  Change append = store;
  append.kind = Change::Kind::kAppend;
  append.record.key = "log";
  append.record.value = "more";
  append.base_version = 5;
  append.record.version = 8;
  append.more_of_batch = false;
  EXPECT_TRUE(replay.Apply(0, store).ok());
  EXPECT_TRUE(replay.Apply(0, append).ok());
  EXPECT_EQ(map.GetSize(kStartUs).entries, 0);
  // It is there.
  Change before = store;
  before.more_of_batch = false;
  before.record.key = "log";
  before.record.version = 5;
  EXPECT_TRUE(replay.Apply(0, before).ok());
  EXPECT_TRUE(replay.Apply(0, store).ok());
  EXPECT_TRUE(replay.Apply(0, append).ok());
  replay.Finish();
  EXPECT_EQ(map.GetSize(kStartUs).entries, 2);
}

// Money is moved between accounts, whose sum each reader sees unchanged: by
// atomic reads, and by scans of one shard and sizes.
class AtomicThreadsTest : public ::testing::Test {
 protected:
  static constexpr int kAccounts = 12;
  static constexpr int64_t kSum = 1'200;
  static constexpr int kRounds = test::Rounds(4'000);

  AtomicThreadsTest() : map_("map", Options(), nullptr, kStartUs) {
    for (int i = 0; i < kAccounts; ++i) {
      keys_.push_back(absl::StrCat("account", i));
      map_.Apply(Operation::Put(keys_.back(), "100"), kStartUs);
    }
  }

  static NamespaceOptions Options() {
    NamespaceOptions options = WithBuckets(kHour, 11);
    options.num_shards = 4;
    options.max_entries = 4 * kAccounts;
    return options;
  }

  void Move(Dice* dice) {
    for (int i = 0; i < kRounds; ++i) {
      const size_t from = dice->Index(kAccounts);
      const size_t to = (from + 1 + dice->Index(kAccounts - 1)) % kAccounts;
      const int64_t amount = dice->Draw(1, 9);
      // Fails now and then, as the marker is put and removed.
      const std::string marker = absl::StrCat("marker", from % 3);
      Operation mark = dice->Chance(500) ? Operation::Remove(marker)
                                         : Operation::Put(marker, "");
      if (mark.kind == OpKind::kPut) mark.condition = Condition::kIfAbsent;
      const std::vector<Operation> ops = {
          Operation::Combine(keys_[from], Combination::kAdd, -amount),
          Operation::Combine(keys_[to], Combination::kAdd, amount), mark};
      std::vector<Result> results(ops.size());
      EXPECT_TRUE(
          map_.ApplyAtomic(ops, kStartUs, absl::MakeSpan(results)).ok());
      const bool failed = !results[2].status.ok();
      for (const Result& result : results) {
        EXPECT_EQ(!result.status.ok(), failed) << result.status;
      }
      ++(failed ? failed_ : moved_);
    }
  }

  void Sum() {
    std::vector<Operation> ops;
    for (const std::string& key : keys_) ops.push_back(Operation::Get(key));
    std::vector<Result> results(ops.size());
    while (!done_) {
      EXPECT_TRUE(
          map_.ApplyAtomic(ops, kStartUs, absl::MakeSpan(results)).ok());
      int64_t sum = 0;
      for (const Result& result : results) {
        sum += std::stoll(result.entry.value);
      }
      ASSERT_EQ(sum, kSum);
    }
  }

  // Batches that lock several shards, and what locks all of them.
  void Disturb(Dice* dice) {
    while (!done_) {
      std::vector<Operation> ops;
      for (const std::string& key : keys_) ops.push_back(Operation::Get(key));
      std::vector<Result> results(ops.size());
      map_.ApplyBatch(ops, kStartUs, absl::MakeSpan(results));
      const NamespaceSize size = map_.GetSize(kStartUs);
      EXPECT_GE(size.entries, kAccounts);
      EXPECT_LE(size.entries, kAccounts + 3);
      if (dice->Chance(100)) {
        ScanPosition position;
        while (map_.Scan("", kStartUs, 5, 1 << 20, &position,
                         [](const ScannedEntry&) {})) {
        }
      }
    }
  }

  TimeCacheMap map_;
  std::vector<std::string> keys_;
  std::atomic<bool> done_{false};
  std::atomic<int> moved_{0};
  std::atomic<int> failed_{0};
};

TEST_F(AtomicThreadsTest, NoReaderSeesAPart) {
  std::vector<std::thread> writers;
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([this, i] {
      Dice dice(test::Seed() + static_cast<uint64_t>(i));
      Move(&dice);
    });
  }
  readers.emplace_back([this] { Sum(); });
  readers.emplace_back([this] {
    Dice dice(test::Seed());
    Disturb(&dice);
  });
  for (std::thread& writer : writers) writer.join();
  done_ = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(moved_, 0);
  EXPECT_GT(failed_, 0);
  EXPECT_EQ(map_.CountedSize().entries, map_.GetSize(kStartUs).entries);
}

}  // namespace
}  // namespace timecache::server

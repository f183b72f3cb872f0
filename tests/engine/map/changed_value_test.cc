// Append, Combine and Put with keep_deadline: new values of old ones, one
// behaviour a test. Gather is in gather_test.cc.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/shard/shard.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int64_t kChangedTtlUs = 30 * kSecond;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

Operation Keeping(Operation op) {
  op.keep_deadline = true;
  return op;
}
Operation Touching(Operation op) {
  op.touch = true;
  return op;
}
Operation OnCondition(Operation op, Condition condition, uint64_t version = 0) {
  op.condition = condition;
  op.if_version = version;
  return op;
}
Operation Add(absl::string_view key, int64_t number) {
  return Operation::Combine(key, Combination::kAdd, number);
}
Operation Xor(absl::string_view key, int64_t number) {
  return Operation::Combine(key, Combination::kXor, number);
}
Operation RemovingZero(Operation op) {
  op.remove_if_zero = true;
  return op;
}

void ExpectChangeError(const Result& result, absl::StatusCode code,
                       Reason reason) {
  EXPECT_EQ(result.status.code(), code) << result.status;
  EXPECT_EQ(ReasonOf(result.status), reason) << result.status;
  EXPECT_EQ(result.version, 0u);
  EXPECT_EQ(result.number, 0);
}
void ExpectPreconditionFailed(const Result& result, Reason reason) {
  ExpectChangeError(result, absl::StatusCode::kFailedPrecondition, reason);
}

class ChangedValueTest : public ::testing::Test {
 protected:
  Result Apply(const Operation& op) { return harness_.Apply(op); }
  Entry Get(absl::string_view key) {
    return harness_.Apply(Operation::Get(key)).entry;
  }

  MapHarness harness_{WithBuckets(kChangedTtlUs, 4)};
};

// --- Put with keep_deadline.

TEST_F(ChangedValueTest, APutThatKeepsTheDeadlineChangesValueAndVersionAlone) {
  ASSERT_TRUE(harness_.PutFor("key", "1", 7 * kSecond).status.ok());
  const Entry before = Get("key");
  harness_.Pass(3 * kSecond);
  const Result put = Apply(Keeping(Operation::Put("key", "longer")));
  ASSERT_TRUE(put.status.ok()) << put.status;
  const Entry after = Get("key");
  EXPECT_EQ(after.value, "longer");
  EXPECT_EQ(after.version, put.version);
  EXPECT_GT(after.version, before.version);
  EXPECT_EQ(after.put_us, before.put_us);
  EXPECT_EQ(after.deadline_us, before.deadline_us);
  // Its TTL stays its own.
  Apply(Operation::Touch("key"));
  EXPECT_EQ(Get("key").deadline_us, harness_.now_us() + 7 * kSecond);
}

TEST_F(ChangedValueTest, APutThatKeepsTheDeadlineOfNothingGetsAFreshOne) {
  Apply(Keeping(Operation::Put("key", "1")));
  EXPECT_EQ(Get("key").deadline_us, harness_.now_us() + kChangedTtlUs);
}

TEST_F(ChangedValueTest, WhatKeepsItsDeadlineKeepsItsDeathAlsoInWiderBuckets) {
  harness_.Put("key", "1");
  const int64_t death_us =
      DeathTimeUs(harness_.now_us() + kChangedTtlUs,
                  BucketWidthUs(WithBuckets(kChangedTtlUs, 4)));
  harness_.Update(WithBuckets(kChangedTtlUs * 10, 2));
  Apply(Keeping(Operation::Put("key", "2")));
  Apply(Operation::Append("key", "3"));
  harness_.GoTo(death_us - 1);
  EXPECT_EQ(harness_.Get("key"), "23");
  harness_.GoTo(death_us);
  EXPECT_EQ(harness_.Get("key"), "(none)");
  const Reading told = harness_.ReadEvents();
  ASSERT_EQ(told.events.size(), 1u);
  EXPECT_EQ(told.events[0].value, "23");
  EXPECT_EQ(told.events[0].death_us, death_us);
}

TEST_F(ChangedValueTest, KeepDeadlineWithATtlIsMalformed) {
  const Result put =
      Apply(Keeping(Operation::Put("key", "1").WithTtl(kSecond)));
  EXPECT_EQ(put.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(put.status), "keep_deadline");
  EXPECT_EQ(harness_.Get("key"), "(none)");
}

// --- Append.

TEST_F(ChangedValueTest, AppendCreatesAndAppends) {
  const Result first = Apply(Operation::Append("log", "one,"));
  EXPECT_FALSE(first.found);
  EXPECT_EQ(first.number, 4);
  const Result second = Apply(Operation::Append("log", "two,"));
  EXPECT_TRUE(second.found);
  EXPECT_EQ(second.number, 8);
  EXPECT_GT(second.version, first.version);
  Apply(Operation::Append("log", ""));
  EXPECT_EQ(harness_.Get("log"), "one,two,");
  EXPECT_EQ(harness_.Bytes(), 3 + 8);
  EXPECT_EQ(harness_.Entries(), 1);
  EXPECT_EQ(harness_.Statistics().operations.appends, 3u);
  EXPECT_EQ(harness_.Statistics().operations.puts, 0u);
}

TEST_F(ChangedValueTest, NothingAppendedToNothingIsAnEmptyEntry) {
  for (int i = 0; i < 3; ++i) {
    const Result result = Apply(Operation::Append("log", ""));
    ASSERT_TRUE(result.status.ok());
    EXPECT_EQ(result.number, 0);
    EXPECT_EQ(result.found, i > 0);
  }
  EXPECT_EQ(Apply(Operation::Append("log", "x")).number, 1);
  EXPECT_EQ(harness_.Get("log"), "x");
}

TEST_F(ChangedValueTest, AnAppendKeepsTheDeadlineUnlessItTouches) {
  Apply(Operation::Append("log", "1"));
  const int64_t deadline_us = Get("log").deadline_us;
  harness_.Pass(kSecond);
  // A TTL of an entry that is there counts only where it is renewed.
  Apply(Operation::Append("log", "2").WithTtl(9 * kSecond));
  EXPECT_EQ(Get("log").deadline_us, deadline_us);
  EXPECT_EQ(Get("log").put_us, harness_.now_us() - kSecond);
  Apply(Touching(Operation::Append("log", "3").WithTtl(9 * kSecond)));
  EXPECT_EQ(Get("log").deadline_us, harness_.now_us() + 9 * kSecond);
  harness_.Pass(kSecond);
  Apply(Touching(Operation::Append("log", "4")));
  EXPECT_EQ(Get("log").deadline_us, harness_.now_us() + 9 * kSecond);
  EXPECT_EQ(Get("log").value, "1234");
  // One that makes the entry gives it its TTL.
  Apply(Operation::Append("other", "1").WithTtl(5 * kSecond));
  EXPECT_EQ(Get("other").deadline_us, harness_.now_us() + 5 * kSecond);
}

TEST_F(ChangedValueTest, AnAppendToWhatDiedBeginsAnew) {
  Apply(Operation::Append("log", "old"));
  const int64_t first_us = harness_.now_us();
  harness_.GoTo(first_us + 2 * kChangedTtlUs);
  EXPECT_EQ(Apply(Operation::Append("log", "new")).number, 3);
  const Reading told = harness_.ReadEvents();
  ASSERT_EQ(told.events.size(), 1u);
  EXPECT_EQ(told.events[0].value, "old");
  EXPECT_EQ(harness_.Get("log"), "new");
}

TEST_F(ChangedValueTest, AppendsKnowTheConditionsOfPuts) {
  const Operation append = Operation::Append("log", "x");
  ExpectPreconditionFailed(Apply(OnCondition(append, Condition::kIfPresent)),
                           Reason::kKeyNotFound);
  ExpectPreconditionFailed(Apply(OnCondition(append, Condition::kIfVersion, 7)),
                           Reason::kKeyNotFound);
  const Result first = Apply(OnCondition(append, Condition::kIfAbsent));
  ASSERT_TRUE(first.status.ok());
  ExpectPreconditionFailed(Apply(OnCondition(append, Condition::kIfAbsent)),
                           Reason::kKeyExists);
  ExpectPreconditionFailed(
      Apply(OnCondition(append, Condition::kIfVersion, first.version + 1)),
      Reason::kVersionMismatch);
  EXPECT_TRUE(Apply(OnCondition(append, Condition::kIfVersion, first.version))
                  .status.ok());
  EXPECT_EQ(harness_.Get("log"), "xx");
}

TEST_F(ChangedValueTest, AValueGrowsToItsLimitAndNotBeyond) {
  NamespaceOptions options = WithBuckets(kChangedTtlUs, 4);
  options.max_value_bytes = 100;
  harness_.Update(options);
  Apply(Operation::Append("log", std::string(60, 'a')));
  const Result full = Apply(Operation::Append("log", std::string(40, 'b')));
  EXPECT_EQ(full.number, 100);
  ExpectPreconditionFailed(Apply(Operation::Append("log", "c")),
                           Reason::kValueTooLarge);
  const Entry entry = Get("log");
  EXPECT_EQ(entry.value, std::string(60, 'a') + std::string(40, 'b'));
  EXPECT_EQ(entry.version, full.version);
  // What is too large by itself is malformed.
  const Result large = Apply(Operation::Append("log", std::string(101, 'd')));
  EXPECT_EQ(large.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(large.status), "value");
}

TEST_F(ChangedValueTest, LimitsCountWhatIsAppended) {
  NamespaceOptions options = WithBuckets(kChangedTtlUs, 4);
  options.max_bytes = 50;
  harness_.Update(options);
  Apply(Operation::Append("log", std::string(27, 'a')));
  ExpectChangeError(Apply(Operation::Append("log", std::string(21, 'b'))),
                    absl::StatusCode::kResourceExhausted, Reason::kMaxBytes);
  EXPECT_EQ(harness_.Bytes(), 30);
  EXPECT_TRUE(
      Apply(Operation::Append("log", std::string(20, 'b'))).status.ok());
  EXPECT_EQ(harness_.Bytes(), 50);
}

TEST_F(ChangedValueTest, ARoundOfPutsAppendsAndTouchesKeepsTheBytesRight) {
  // Over every buckets' boundary, with values that move, shrink and grow.
  std::string expected;
  for (int i = 0; i < 2'000; ++i) {
    harness_.Pass(kSecond / 10);
    if (i % 97 == 0) {
      expected = std::string(static_cast<size_t>(i % 7), 'p');
      Apply(Operation::Put("key", expected));
    }
    const std::string more(static_cast<size_t>(i % 13), static_cast<char>(i));
    Apply(i % 5 == 0 ? Touching(Operation::Append("key", more))
                     : Operation::Append("key", more));
    expected += more;
    harness_.Put(absl::StrCat("other", i % 50), std::string(50, 'o'));
    if (i % 11 == 0) Apply(Operation::Touch("key"));
    ASSERT_EQ(harness_.Get("key"), expected) << i;
  }
}

// The shard says how much it copies; the clock says nothing about that.
TEST(AppendCostTest, AValueIsCopiedOnceForEachDoubling) {
  constexpr size_t kPiece = 64;
  constexpr size_t kSize = 1 << 20;
  Usage usage(0, 0);
  LiveBuckets buckets;
  VersionSource versions(kStartUs);
  Shard shard(WithBuckets(kChangedTtlUs, 4), &usage, &buckets, &versions,
              KeyHash(1));
  const std::string piece(kPiece, 'x');
  const Operation append = Operation::Append("log", piece);
  Result result;
  for (size_t size = 0; size < kSize; size += kPiece) {
    ResponseBudget room;
    result.Clear();
    const Shard::Outcome outcome =
        shard.Apply(append, KeyHash(1)("log"), kStartUs, &room, &result);
    ASSERT_EQ(outcome.hit, LimitHit::kNone);
    ASSERT_TRUE(result.status.ok()) << result.status;
  }
  EXPECT_EQ(result.number, kSize);
  // Compaction, of what the moves have left behind, copies some of it again.
  EXPECT_LE(shard.copied_bytes(), 2 * kSize);
  EXPECT_GE(shard.copied_bytes(), kSize / 4);
  EXPECT_LE(shard.GetStatistics().memory_bytes,
            static_cast<int64_t>(3 * kSize));
}

// What appends that renew a value in each of eight buckets copy of it.
uint64_t BytesCopiedByMoves(size_t value_bytes) {
  constexpr int kBuckets = 8;
  const NamespaceOptions options = WithBuckets(kChangedTtlUs, 31);
  Usage usage(0, 0);
  LiveBuckets buckets;
  VersionSource versions(kStartUs);
  Shard shard(options, &usage, &buckets, &versions, KeyHash(1));
  const auto append = [&](absl::string_view bytes, int64_t now_us) {
    ResponseBudget room;
    Result result;
    shard.Apply(Touching(Operation::Append("log", bytes)), KeyHash(1)("log"),
                now_us, &room, &result);
    EXPECT_TRUE(result.status.ok()) << result.status;
  };
  append(std::string(value_bytes, 'x'), kStartUs);
  append("y", kStartUs);
  const uint64_t before = shard.copied_bytes();
  for (int i = 1; i <= kBuckets; ++i) {
    // Several in each bucket.
    for (int j = 9; j >= 0; --j) {
      append("z", kStartUs + i * BucketWidthUs(options) - j);
    }
  }
  return shard.copied_bytes() - before;
}

TEST(AppendCostTest, AValueIsCopiedOnceForEachBucketItMovesTo) {
  constexpr size_t kSize = 50 << 10;
  const uint64_t copied = BytesCopiedByMoves(kSize);
  EXPECT_GE(copied, 8 * kSize);
  EXPECT_LE(copied, 8 * (kSize + 100));
}

// But where the age of its key takes another byte of its header.
TEST(AppendCostTest, ALargeValueMovesWithItsSegment) {
  constexpr size_t kSize = 512 << 10;
  EXPECT_LE(BytesCopiedByMoves(kSize), 4 * kSize);
}

TEST(RenewalCostTest, ALargeValueIsNotCopied) {
  Usage usage(0, 0);
  VersionSource versions(kStartUs);
  LiveBuckets buckets;
  Shard shard(WithBuckets(kChangedTtlUs, 31), &usage, &buckets, &versions,
              KeyHash(1));
  const std::string value(512 << 10, 'x');
  Result result;
  const auto apply = [&](const Operation& op) {
    ResponseBudget room;
    result.Clear();
    shard.Apply(op, KeyHash(1)("key"), kStartUs, &room, &result);
    ASSERT_TRUE(result.status.ok()) << result.status;
  };
  apply(Operation::Put("key", value));
  const int64_t memory = shard.GetStatistics().memory_bytes;
  for (int i = 1; i <= 1'000; ++i) {
    apply(Operation::Touch("key").WithTtl(kChangedTtlUs * (1 + i % 7)));
  }
  apply(Operation::Get("key"));
  EXPECT_TRUE(result.entry.value == value);
  EXPECT_EQ(result.entry.deadline_us, kStartUs + kChangedTtlUs * 7);
  EXPECT_EQ(shard.copied_bytes(), 0u);
  EXPECT_LE(shard.GetStatistics().memory_bytes, memory + 1'000);
}

// --- Combine.

TEST_F(ChangedValueTest, CombineCountsInADecimalNumber) {
  const Result first = Apply(Add("n", 5));
  EXPECT_FALSE(first.found);
  EXPECT_EQ(first.number, 5);
  EXPECT_EQ(harness_.Get("n"), "5");
  const Result second = Apply(Add("n", -12));
  EXPECT_TRUE(second.found);
  EXPECT_EQ(second.number, -7);
  EXPECT_GT(second.version, first.version);
  EXPECT_EQ(harness_.Get("n"), "-7");
  EXPECT_EQ(harness_.Bytes(), 3);
  harness_.Put("n", "10");
  EXPECT_EQ(Apply(Add("n", 1)).number, 11);
  EXPECT_EQ(harness_.Statistics().operations.combines, 3u);
}

TEST_F(ChangedValueTest, AMissingKeyCountsAsTheInitialNumber) {
  Operation op = Add("n", 1);
  op.initial = 100;
  EXPECT_EQ(Apply(op).number, 101);
  EXPECT_EQ(Apply(op).number, 102);
}

TEST_F(ChangedValueTest, XorUndoesItself) {
  EXPECT_EQ(Apply(Xor("n", -3)).number, -3);
  EXPECT_EQ(Apply(Xor("n", kMost)).number, -3 ^ kMost);
  EXPECT_EQ(Apply(RemovingZero(Xor("n", -3))).number, kMost);
  const Result last = Apply(RemovingZero(Xor("n", kMost)));
  EXPECT_EQ(last.number, 0);
  EXPECT_TRUE(last.removed);
  EXPECT_EQ(last.version, 0u);
  EXPECT_EQ(harness_.Entries(), 0);
  EXPECT_EQ(harness_.Bytes(), 0);
  // A removal makes no event.
  harness_.Pass(3 * kChangedTtlUs);
  EXPECT_TRUE(harness_.ReadEvents().events.empty());
}

TEST_F(ChangedValueTest, ZeroStaysUnlessItIsToBeRemoved) {
  EXPECT_EQ(Apply(Add("n", 0)).number, 0);
  EXPECT_EQ(harness_.Get("n"), "0");
  const Result none = Apply(RemovingZero(Add("none", 0)));
  EXPECT_TRUE(none.status.ok());
  EXPECT_TRUE(none.removed);
  EXPECT_FALSE(none.found);
  EXPECT_EQ(harness_.Get("none"), "(none)");
}

TEST_F(ChangedValueTest, OnlyACanonicalNumberIsOne) {
  for (const absl::string_view text :
       {"", " 1", "1 ", "+1", "01", "-0", "1.0", "x", "0x1", "--1", "-",
        "9223372036854775808", "-9223372036854775809",
        "18446744073709551616000"}) {
    harness_.Put("n", text);
    const uint64_t version = Get("n").version;
    ExpectPreconditionFailed(Apply(Add("n", 0)), Reason::kNotANumber);
    EXPECT_EQ(harness_.Get("n"), text);
    EXPECT_EQ(Get("n").version, version);
  }
  for (const absl::string_view text :
       {"0", "-1", "9223372036854775807", "-9223372036854775808"}) {
    harness_.Put("n", text);
    EXPECT_TRUE(Apply(Add("n", 0)).status.ok()) << text;
    EXPECT_EQ(harness_.Get("n"), text);
  }
}

TEST_F(ChangedValueTest, ASumBeyondSixtyFourBitsChangesNothing) {
  harness_.Put("n", absl::StrCat(kMost));
  ExpectPreconditionFailed(Apply(Add("n", 1)), Reason::kNumberOverflow);
  EXPECT_EQ(Apply(Add("n", -1)).number, kMost - 1);
  EXPECT_EQ(Apply(Add("n", 1)).number, kMost);
  Operation op = Add("other", std::numeric_limits<int64_t>::min());
  op.initial = -1;
  ExpectPreconditionFailed(Apply(op), Reason::kNumberOverflow);
  EXPECT_EQ(harness_.Get("other"), "(none)");
}

TEST_F(ChangedValueTest, ACombineKeepsTheDeadlineUnlessItTouches) {
  Apply(Add("n", 1).WithTtl(9 * kSecond));
  const int64_t deadline_us = Get("n").deadline_us;
  EXPECT_EQ(deadline_us, harness_.now_us() + 9 * kSecond);
  harness_.Pass(kSecond);
  Apply(Add("n", 1));
  Apply(Add("n", 100));
  EXPECT_EQ(Get("n").deadline_us, deadline_us);
  Apply(Touching(Add("n", 1)));
  EXPECT_EQ(Get("n").deadline_us, deadline_us + kSecond);
}

TEST_F(ChangedValueTest, ACombineKnowsIfVersion) {
  ExpectPreconditionFailed(
      Apply(OnCondition(Add("n", 1), Condition::kIfVersion, 1)),
      Reason::kKeyNotFound);
  const Result first = Apply(Add("n", 1));
  const Operation again =
      OnCondition(Add("n", 1), Condition::kIfVersion, first.version);
  EXPECT_TRUE(Apply(again).status.ok());
  ExpectPreconditionFailed(Apply(again), Reason::kVersionMismatch);
  EXPECT_EQ(harness_.Get("n"), "2");
}

TEST_F(ChangedValueTest, ANumberMayBeTooLongForAValue) {
  NamespaceOptions options = WithBuckets(kChangedTtlUs, 4);
  options.max_value_bytes = 2;
  harness_.Update(options);
  EXPECT_EQ(Apply(Add("n", 99)).number, 99);
  ExpectPreconditionFailed(Apply(Add("n", 1)), Reason::kValueTooLarge);
  EXPECT_EQ(harness_.Get("n"), "99");
}

// --- What grew, where entries are read, moved and die.

TEST_F(ChangedValueTest, WhatGrewDiesWithItsWholeValueInItsTurn) {
  harness_.Put("before", "b");
  for (int i = 0; i < 100; ++i) Apply(Operation::Append("log", "0123456789"));
  harness_.Put("after", "a");
  harness_.Pass(3 * kChangedTtlUs);
  std::vector<std::string> keys;
  for (const DeliveredEvent& told : harness_.ReadEvents().events) {
    keys.push_back(absl::StrCat(told.key, " ", told.value.size()));
  }
  EXPECT_THAT(
      keys, ::testing::UnorderedElementsAre("before 1", "log 1000", "after 1"));
}

TEST_F(ChangedValueTest, WhatGrewIsEvictedWhole) {
  NamespaceOptions options = WithBuckets(kChangedTtlUs, 4);
  options.max_entries = 2;
  options.limit_policy = LimitPolicy::kEvictOldest;
  options.num_shards = 1;
  MapHarness harness(options);
  for (int i = 0; i < 10; ++i) harness.Apply(Operation::Append("a", "0123"));
  harness.Put("b", "1");
  harness.Put("c", "1");
  const Reading told = harness.ReadEvents();
  ASSERT_EQ(told.events.size(), 1u);
  EXPECT_EQ(told.events[0].key, "a");
  EXPECT_EQ(told.events[0].value.size(), 40u);
  EXPECT_EQ(harness.Bytes(), 4);
}

TEST_F(ChangedValueTest, CompactionKeepsWhatGrewAndItsRoom) {
  NamespaceOptions options = WithBuckets(kChangedTtlUs, 2);
  options.num_shards = 1;
  MapHarness harness(options);
  constexpr int kKeys = 300;
  std::vector<std::string> values(kKeys);
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = absl::StrCat("k", i);
      const std::string more = absl::StrCat(round, ",");
      if ((i + round) % 3 == 0) {
        harness.Put(absl::StrCat("filler", i), std::string(200, 'f'));
        harness.Apply(Operation::Remove(absl::StrCat("filler", i)));
      }
      harness.Apply(Operation::Append(key, more));
      values[static_cast<size_t>(i)] += more;
    }
  }
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_EQ(harness.Get(absl::StrCat("k", i)),
              values[static_cast<size_t>(i)]);
  }
}

TEST(ChangedValueThreadsTest, NoSumAndNoAppendIsLost) {
  constexpr int kThreads = 8;
  constexpr int kEach = 5'000;
  TimeCacheMap map("map", WithBuckets(kChangedTtlUs, 4), nullptr, kStartUs);
  std::vector<std::thread> threads;
  std::vector<int64_t> sums(kThreads);
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&map, &sums, t] {
      for (int i = 0; i < kEach; ++i) {
        sums[t] = map.Apply(Add("sum", 1), kStartUs + i).number;
        map.Apply(Operation::Append("log", "x"), kStartUs + i);
        map.Apply(RemovingZero(Xor("ack", i + 1)), kStartUs + i);
        map.Apply(RemovingZero(Xor("ack", i + 1)), kStartUs + i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const int64_t now_us = kStartUs + kEach;
  EXPECT_EQ(map.Apply(Operation::Get("sum"), now_us).entry.value,
            absl::StrCat(kThreads * kEach));
  EXPECT_EQ(*std::max_element(sums.begin(), sums.end()), kThreads * kEach);
  EXPECT_EQ(map.Apply(Operation::Get("log"), now_us).entry.value,
            std::string(kThreads * kEach, 'x'));
  EXPECT_FALSE(map.Apply(Operation::Get("ack"), now_us).found);
}

}  // namespace
}  // namespace timecache::server

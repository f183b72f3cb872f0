// Append, Combine and Put with keep_deadline at their limits, and what they cost:
// what they do is checked beside the reference model. Gather is in
// gather_test.cc.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/shard/shard.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int64_t kChangedTtlUs = 30 * kSecond;
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

Operation Touching(Operation op) {
  op.touch = true;
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

void ExpectPreconditionFailed(const Result& result, Reason reason) {
  EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(result.status), reason) << result.status;
  EXPECT_EQ(result.version, 0u);
  EXPECT_EQ(result.number, 0);
}

class ChangedValueTest : public ::testing::Test {
 protected:
  Result Apply(const Operation& op) { return harness_.Apply(op); }
  Entry Get(absl::string_view key) {
    return harness_.Apply(Operation::Get(key)).entry;
  }

  MapHarness harness_{WithBuckets(kChangedTtlUs, 4)};
};

TEST_F(ChangedValueTest, WhatKeepsItsDeadlineKeepsItsDeathAlsoInWiderBuckets) {
  harness_.Put("key", "1");
  const int64_t death_us =
      DeathTimeUs(harness_.now_us() + kChangedTtlUs,
                  BucketWidthUs(WithBuckets(kChangedTtlUs, 4)));
  harness_.Update(WithBuckets(kChangedTtlUs * 10, 2));
  Operation put = Operation::Put("key", "2");
  put.keep_deadline = true;
  Apply(put);
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

TEST_F(ChangedValueTest, ANumberMayBeTooLongForAValue) {
  NamespaceOptions options = WithBuckets(kChangedTtlUs, 4);
  options.max_value_bytes = 2;
  harness_.Update(options);
  EXPECT_EQ(Apply(Add("n", 99)).number, 99);
  ExpectPreconditionFailed(Apply(Add("n", 1)), Reason::kValueTooLarge);
  EXPECT_EQ(harness_.Get("n"), "99");
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

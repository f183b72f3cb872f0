// Gather at its limits, and by many callers: what it does is checked beside the
// reference model.

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/shard/shard.h"
#include "tests/support/engine/crash_world.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int64_t kGatherTtlUs = 30 * kSecond;

void ExpectRefused(const Result& result, Reason reason) {
  EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(result.status), reason) << result.status;
  EXPECT_FALSE(result.has_entry);
}

class GatherTest : public ::testing::Test {
 protected:
  Result Gather(absl::string_view key, absl::string_view part,
                absl::string_view value, uint64_t expected) {
    Gathering gathering;
    EXPECT_TRUE(gathering.Set(part, expected, {}).ok());
    return harness_.Apply(Operation::Gather(key, &gathering, value));
  }

  MapHarness harness_{WithBuckets(kGatherTtlUs, 4)};
};

// One expectation is a beginning of the other, as it lies in the value.
TEST_F(GatherTest, FewerNamesAreAnotherExpectation) {
  Gathering two, one;
  ASSERT_TRUE(two.Set("a", 0, {"a", "b"}).ok());
  ASSERT_TRUE(one.Set("a", 0, {"a"}).ok());
  harness_.Apply(Operation::Gather("1", &two, "x"));
  ExpectRefused(harness_.Apply(Operation::Gather("1", &one, "x")),
                Reason::kGatherMismatch);
}

TEST_F(GatherTest, ARememberedKeyTakesNoPartUntilItsTimeIsOver) {
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("a", 1, {}).ok());
  gathering.remember_us = 5 * kSecond;
  const Operation gather = Operation::Gather("1", &gathering, "x");
  EXPECT_TRUE(harness_.Apply(gather).removed);
  const int64_t memory_bytes = harness_.Statistics().memory_bytes;
  harness_.Pass(5 * kSecond - 1);
  EXPECT_EQ(ReasonOf(harness_.Apply(gather).status), Reason::kGatherComplete);
  EXPECT_EQ(harness_.Entries(), 0);
  harness_.Pass(1);
  EXPECT_TRUE(harness_.Apply(gather).removed);
  harness_.Pass(5 * kSecond);
  harness_.Sweep();
  EXPECT_LT(harness_.Statistics().memory_bytes, memory_bytes);
}

TEST_F(GatherTest, RememberHasTheRangeOfATtl) {
  for (const int64_t remember_us :
       {kMinTtlUs - 1, NamespaceOptions().max_ttl_us + 1}) {
    Gathering gathering;
    ASSERT_TRUE(gathering.Set("a", 1, {}).ok());
    gathering.remember_us = remember_us;
    EXPECT_EQ(
        FieldOf(harness_.Apply(Operation::Gather("1", &gathering, "x")).status),
        "remember");
  }
}

TEST_F(GatherTest, TheFirstKeysAreForgottenBeyondTheLimit) {
  NamespaceOptions options = WithBuckets(kGatherTtlUs, 4);
  options.num_shards = 256;
  MapHarness harness(options);
  constexpr int kKeys = 3 * int{Shard::kMaxRememberedKeys} / 2;
  const auto gather = [&harness](int key) {
    Gathering gathering;
    EXPECT_TRUE(gathering.Set("a", 1, {}).ok());
    gathering.remember_us = kSecond;
    return harness.Apply(Operation::Gather(absl::StrCat(key), &gathering, "x"));
  };
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(gather(i).removed);
  EXPECT_EQ(ReasonOf(gather(kKeys - 1).status), Reason::kGatherComplete);
  EXPECT_TRUE(gather(0).removed);
}

TEST_F(GatherTest, AllPartsAreWithinTheValueLimit) {
  NamespaceOptions options = WithBuckets(kGatherTtlUs, 4);
  options.max_value_bytes = 40;
  harness_.Update(options);
  ASSERT_TRUE(Gather("1", "a", std::string(20, 'x'), 2).status.ok());
  // The last part, too: the answer would be larger.
  ExpectRefused(Gather("1", "b", std::string(20, 'y'), 2),
                Reason::kValueTooLarge);
  EXPECT_EQ(harness_.Entries(), 1);
  EXPECT_TRUE(Gather("1", "b", "y", 2).has_entry);
  ExpectRefused(Gather("2", "a", std::string(39, 'x'), 2),
                Reason::kValueTooLarge);
  EXPECT_EQ(harness_.Entries(), 0);
}

TEST_F(GatherTest, ACompleteOneThatHasNoRoomInTheAnswerStays) {
  const std::string large(1 << 20, 'v');
  NamespaceOptions options = WithBuckets(kGatherTtlUs, 4);
  options.max_value_bytes = 4 << 20;
  harness_.Update(options);
  harness_.Put("large", std::string(3 << 20, 'l'));
  Gather("1", "a", large, 2);
  Gathering gathering;
  ASSERT_TRUE(gathering.Set("b", 2, {}).ok());
  const std::vector<Operation> batch = {
      Operation::Get("large"), Operation::Gather("1", &gathering, "y")};
  std::vector<Result> results(batch.size());
  harness_.map().ApplyBatch(batch, harness_.now_us(), absl::MakeSpan(results));
  // Whichever came first has taken the room.
  const bool gathered = results[1].status.ok();
  EXPECT_NE(gathered, results[0].status.ok());
  EXPECT_EQ(ReasonOf(results[gathered ? 0 : 1].status),
            Reason::kMaxResponseBytes);
  EXPECT_EQ(harness_.Entries(), gathered ? 1 : 2);
  if (!gathered) {
    EXPECT_TRUE(Gather("1", "b", "y", 2).has_entry);
  }
}

TEST_F(GatherTest, AThousandPartsAreOneAnswer) {
  for (uint64_t i = 0; i + 1 < kMaxExpectedParts; ++i) {
    const Result result =
        Gather("1", absl::StrCat("part", i), "v", kMaxExpectedParts);
    ASSERT_TRUE(result.status.ok());
    ASSERT_EQ(result.number, static_cast<int64_t>(i + 1));
  }
  const Result last = Gather("1", "last", "v", kMaxExpectedParts);
  ASSERT_TRUE(last.has_entry);
  EXPECT_EQ(last.number, kMaxExpectedParts);
}

// The shard counts each part that it reads as some bytes that it copies.
TEST(GatherCostTest, DoesNotDependOnTheNumberOfParts) {
  constexpr uint64_t kFewParts = 6 * 256;
  const KeyHash hash(1);
  Usage usage(0, 0);
  LiveBuckets buckets;
  VersionSource versions(kStartUs);
  Shard shard(WithBuckets(kGatherTtlUs, 4), &usage, &buckets, &versions, hash);
  Result result;
  // What all parts but the last one cost.
  const auto gather_all = [&](const std::string& value) {
    const uint64_t before = shard.copied_bytes();
    for (uint32_t i = 0; i + 1 < kMaxExpectedParts; ++i) {
      const std::string part = absl::StrCat("p", i);
      Gathering gathering;
      EXPECT_TRUE(gathering.Set(part, kMaxExpectedParts, {}).ok());
      ResponseBudget room;
      result.Clear();
      shard.Apply(Operation::Gather("key", &gathering, value), hash("key"),
                  kStartUs, &room, &result);
      EXPECT_TRUE(result.status.ok()) << result.status;
    }
    EXPECT_EQ(result.number, kMaxExpectedParts - 1);
    return shard.copied_bytes() - before;
  };
  for (const size_t bytes : {size_t{0}, size_t{50}, size_t{900}}) {
    const std::string value(bytes, 'v');
    // Its bytes are copied once for each doubling.
    EXPECT_LE(gather_all(value), kMaxExpectedParts * (kFewParts + 3 * bytes));
    EXPECT_LE(gather_all(value), kMaxExpectedParts * kFewParts);
    EXPECT_TRUE(result.duplicate);
    ResponseBudget room;
    shard.Apply(Operation::Remove("key"), hash("key"), kStartUs, &room,
                &result);
  }
}

// Renewed into other buckets, beside what compaction moves, after crashes and
// checkpoints.
TEST(GatherModelTest, PartsOfMovedKeysAreFound) {
  const NamespaceOptions options = CrashOptions(kHour, 31);
  MemoryCommitLog log;
  JournaledMap journaled(options, &log);
  int64_t now_us = kStartUs;
  Dice dice(1);
  std::vector<std::map<std::string, std::string>> keys(6);
  for (int i = 0; i < 20'000; ++i) {
    now_us += dice.Draw(0, kSecond / 10);
    const size_t number = dice.Index(keys.size());
    auto& parts = keys[number];
    const std::string part = absl::StrCat("part", dice.Draw(0, 499));
    const std::string value(
        static_cast<size_t>(dice.Chance(10) ? dice.Draw(0, 20'000)
                                            : dice.Draw(0, 20)),
        'v');
    Gathering gathering;
    ASSERT_TRUE(gathering.Set(part, 500, {}).ok());
    const std::string key = absl::StrCat("key", number);
    Operation op = Operation::Gather(key, &gathering, value);
    op.touch = dice.Chance(300);
    const Result result = journaled.map().Apply(op, now_us);
    const auto [at, is_new] = parts.try_emplace(part, value);
    if (at->second != value) {
      ASSERT_EQ(ReasonOf(result.status), Reason::kPartExists) << i;
    } else {
      ASSERT_TRUE(result.status.ok()) << i << " " << result.status;
      ASSERT_EQ(result.duplicate, !is_new) << i;
      ASSERT_EQ(result.number, static_cast<int64_t>(parts.size())) << i;
      ASSERT_EQ(result.has_entry, parts.size() == 500) << i;
      if (result.has_entry) parts.clear();
    }
    journaled.map().Apply(
        Operation::Put(absl::StrCat("other", dice.Draw(0, 99)), value), now_us);
    if (dice.Chance(900)) continue;
    journaled.Settle(now_us);
    journaled.StepTrim(now_us, 30);
    if (dice.Chance(50)) journaled.Crash(now_us);
  }
}

TEST(GatherThreadsTest, ExactlyOneCallerGetsAll) {
  constexpr int kThreads = 8;
  constexpr int kKeys = 2'000;
  TimeCacheMap map("map", WithBuckets(kGatherTtlUs, 4), nullptr, kStartUs);
  std::atomic<int> complete{0};
  std::vector<std::atomic<int>> times(kKeys);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string part = absl::StrCat("part", t);
      Gathering gathering;
      EXPECT_TRUE(gathering.Set(part, kThreads, {}).ok());
      for (int i = 0; i < kKeys; ++i) {
        const std::string key = absl::StrCat("k", i);
        const Result result =
            map.Apply(Operation::Gather(key, &gathering, part), kStartUs);
        EXPECT_TRUE(result.status.ok()) << result.status;
        if (!result.has_entry) continue;
        ++times[static_cast<size_t>(i)];
        ++complete;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complete, kKeys);
  for (const std::atomic<int>& each : times) EXPECT_EQ(each, 1);
  EXPECT_EQ(map.GetSize(kStartUs).entries, 0);
}

}  // namespace
}  // namespace timecache::server

// Gather: parts that come one by one, and are given to one caller together.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "server/engine/map/time_cache_map.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int64_t kGatherTtlUs = 30 * kSecond;
constexpr absl::string_view kNames[] = {"gender", "age"};

// "gender=f age=7", in the order in which they lie.
std::string PartsOf(absl::string_view value) {
  std::vector<std::string> texts;
  PartsReader reader(value);
  GatheredPart part;
  while (reader.Next(&part)) {
    texts.push_back(absl::StrCat(part.name, "=", part.value));
  }
  return absl::StrJoin(texts, " ");
}

void ExpectRefused(const Result& result, Reason reason) {
  EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(result.status), reason) << result.status;
  EXPECT_FALSE(result.has_entry);
}

class GatherTest : public ::testing::Test {
 protected:
  // Of so many; of kNames, if that is 0.
  Result Gather(absl::string_view key, absl::string_view part,
                absl::string_view value, uint64_t expected = 0) {
    Gathering gathering;
    const absl::Status status =
        gathering.Set(part, expected,
                      expected == 0 ? absl::MakeConstSpan(kNames)
                                    : absl::Span<const absl::string_view>());
    EXPECT_TRUE(status.ok()) << status;
    Operation op = Operation::Gather(key, &gathering, value);
    op.touch = std::exchange(touch_, false);
    return harness_.Apply(op);
  }
  Entry Get(absl::string_view key) {
    return harness_.Apply(Operation::Get(key)).entry;
  }

  MapHarness harness_{WithBuckets(kGatherTtlUs, 4)};
  // Of the next Gather.
  bool touch_ = false;
};

TEST_F(GatherTest, TheLastPartGetsAllAndTheKeyIsGone) {
  const Result first = Gather("1", "a", "x", 3);
  ASSERT_TRUE(first.status.ok()) << first.status;
  EXPECT_FALSE(first.found);
  EXPECT_FALSE(first.has_entry);
  EXPECT_EQ(first.number, 1);
  EXPECT_NE(first.version, 0u);
  const Result second = Gather("1", "b", "", 3);
  EXPECT_EQ(second.number, 2);
  EXPECT_GT(second.version, first.version);
  const Result last = Gather("1", "c", "z", 3);
  ASSERT_TRUE(last.has_entry);
  EXPECT_TRUE(last.removed);
  EXPECT_TRUE(last.entry.parts);
  EXPECT_EQ(last.number, 3);
  EXPECT_EQ(last.version, 0u);
  EXPECT_EQ(PartsOf(last.entry.value), "a=x b= c=z");
  EXPECT_EQ(harness_.Entries(), 0);
  EXPECT_EQ(harness_.Bytes(), 0);
  harness_.Pass(3 * kGatherTtlUs);
  EXPECT_TRUE(harness_.ReadEvents().events.empty());
  EXPECT_EQ(harness_.Statistics().operations.gathers, 3u);
}

TEST_F(GatherTest, NamesSayWhatIsComplete) {
  EXPECT_FALSE(Gather("1", "age", "7").has_entry);
  const Result last = Gather("1", "gender", "f");
  ASSERT_TRUE(last.has_entry);
  EXPECT_EQ(PartsOf(last.entry.value), "age=7 gender=f");
}

TEST_F(GatherTest, OnePartMayBeAll) {
  const Result only = Gather("1", "a", "x", 1);
  ASSERT_TRUE(only.has_entry);
  EXPECT_FALSE(only.found);
  EXPECT_EQ(PartsOf(only.entry.value), "a=x");
  EXPECT_EQ(only.entry.deadline_us, harness_.now_us() + kGatherTtlUs);
  EXPECT_EQ(harness_.Entries(), 0);
}

TEST_F(GatherTest, TheSamePartAgainChangesNothing) {
  const Result first = Gather("1", "a", "x", 3);
  Gather("1", "b", "y", 3);
  const Entry before = Get("1");
  harness_.Pass(kSecond);
  touch_ = true;
  const Result again = Gather("1", "a", "x", 3);
  ASSERT_TRUE(again.status.ok()) << again.status;
  EXPECT_TRUE(again.duplicate);
  EXPECT_EQ(again.number, 2);
  EXPECT_EQ(again.version, before.version);
  EXPECT_GT(again.version, first.version);
  const Entry after = Get("1");
  EXPECT_EQ(after.value, before.value);
  EXPECT_EQ(after.version, before.version);
  EXPECT_EQ(after.deadline_us, before.deadline_us);
}

TEST_F(GatherTest, APartWithAnotherValueIsRefused) {
  Gather("1", "a", "x", 2);
  const Entry before = Get("1");
  const Result other = Gather("1", "a", "y", 2);
  EXPECT_EQ(other.status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReasonOf(other.status), Reason::kPartExists);
  EXPECT_EQ(Get("1").value, before.value);
  EXPECT_EQ(Get("1").version, before.version);
}

TEST_F(GatherTest, AnotherExpectationIsRefused) {
  Gather("1", "gender", "f");
  ExpectRefused(Gather("1", "a", "x", 2), Reason::kGatherMismatch);
  ExpectRefused(Gather("1", "gender", "f", 2), Reason::kGatherMismatch);
  Gather("2", "a", "x", 3);
  ExpectRefused(Gather("2", "b", "y", 2), Reason::kGatherMismatch);
  ExpectRefused(Gather("2", "age", "7"), Reason::kGatherMismatch);
}

// One expectation is a beginning of the other, as it lies in the value.
TEST_F(GatherTest, FewerNamesAreAnotherExpectation) {
  Gathering two, one;
  ASSERT_TRUE(two.Set("a", 0, {"a", "b"}).ok());
  ASSERT_TRUE(one.Set("a", 0, {"a"}).ok());
  harness_.Apply(Operation::Gather("1", &two, "x"));
  ExpectRefused(harness_.Apply(Operation::Gather("1", &one, "x")),
                Reason::kGatherMismatch);
}

TEST_F(GatherTest, PartsAreNoValueAndAValueIsNoParts) {
  Gather("1", "a", "x", 2);
  ExpectRefused(harness_.Apply(Operation::Append("1", "y")),
                Reason::kValueKindMismatch);
  ExpectRefused(harness_.Apply(Operation::Combine("1", Combination::kAdd, 1)),
                Reason::kValueKindMismatch);
  harness_.Put("2", "value");
  ExpectRefused(Gather("2", "a", "x", 2), Reason::kValueKindMismatch);
  EXPECT_EQ(harness_.Get("2"), "value");
  // A put makes parts a value.
  harness_.Put("1", "value");
  EXPECT_FALSE(Get("1").parts);
  harness_.Apply(Operation::Append("1", "s"));
  EXPECT_EQ(harness_.Get("1"), "values");
}

TEST_F(GatherTest, AGatherKeepsTheDeadlineUnlessItTouches) {
  Gather("1", "a", "x", 4);
  const int64_t deadline_us = Get("1").deadline_us;
  harness_.Pass(kSecond);
  Gather("1", "b", "y", 4);
  EXPECT_EQ(Get("1").deadline_us, deadline_us);
  touch_ = true;
  Gather("1", "c", "z", 4);
  EXPECT_EQ(Get("1").deadline_us, deadline_us + kSecond);
  harness_.Apply(Operation::Touch("1"));
  EXPECT_TRUE(Get("1").parts);
  EXPECT_EQ(PartsOf(Gather("1", "d", "w", 4).entry.value), "a=x b=y c=z d=w");
}

TEST_F(GatherTest, WhatIsIncompleteDiesWithThePartsThatCame) {
  Gather("1", "age", "7");
  Gather("2", "a", "x", 3);
  Gather("2", "b", "y", 3);
  harness_.Put("3", "value");
  harness_.Pass(3 * kGatherTtlUs);
  std::vector<std::string> texts;
  for (const DeliveredEvent& told : harness_.ReadEvents().events) {
    texts.push_back(absl::StrCat(
        told.key, ": ", told.parts ? PartsOf(told.value) : told.value));
  }
  EXPECT_THAT(texts, ::testing::UnorderedElementsAre("1: age=7", "2: a=x b=y",
                                                     "3: value"));
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

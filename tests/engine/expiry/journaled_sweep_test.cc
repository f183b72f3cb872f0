// How the deaths of a journaled map become events: in an order that its entries
// determine, and in steps as small as those of any other map.

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/engine/crash_world.h"

namespace timecache::server {
namespace {

NamespaceOptions OneJournaledShard() {
  NamespaceOptions options = CrashOptions(10 * kSecond, 11);
  options.num_shards = 1;
  return options;
}

class JournaledSweepTest : public ::testing::Test {
 protected:
  void Apply(const Operation& op) {
    ASSERT_TRUE(journaled_.map().Apply(op, now_us_).status.ok());
  }
  // All is dead, and may be told.
  void Die() {
    now_us_ += 20 * kSecond;
    journaled_.map().Advance(now_us_);
    journaled_.Commit();
    journaled_.Permit();
  }
  bool Sweep(int max_records) {
    return journaled_.map().Sweep(now_us_, max_records);
  }

  int64_t now_us_ = kStartUs;
  MemoryCommitLog log_;
  JournaledMap journaled_{OneJournaledShard(), &log_};
};

// By the records of a step.
class JournaledSweepStepsTest : public JournaledSweepTest,
                                public ::testing::WithParamInterface<int> {};

TEST_P(JournaledSweepStepsTest, EventsComeInTheOrderOfTheirVersions) {
  constexpr int kEntries = 5'000;
  for (int i = 0; i < kEntries; ++i) {
    Apply(Operation::Put(absl::StrCat("k", i), "v"));
  }
  // Into the next bucket, where they lie in this order.
  now_us_ += kSecond;
  std::vector<int> order(kEntries);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  for (const int i : order) Apply(Operation::Touch(absl::StrCat("k", i)));
  Die();
  while (Sweep(GetParam())) {
  }
  journaled_.Read();
  ASSERT_EQ(journaled_.told().size(), static_cast<size_t>(kEntries));
  for (int i = 0; i < kEntries; ++i) {
    ASSERT_EQ(journaled_.told()[static_cast<size_t>(i)].key,
              absl::StrCat("k", i));
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, JournaledSweepStepsTest,
                         ::testing::Values(1, 7, 1'024, 1 << 20));

// However late the sweeps are, and whatever came in between: a replay knows no
// other time.
TEST_F(JournaledSweepTest, EventsHaveTheTimeOfTheTickThatPermitsThem) {
  for (int i = 0; i < 10; ++i) {
    Apply(Operation::Put(absl::StrCat("first", i), "v"));
  }
  Die();
  const int64_t first_us = now_us_;
  Sweep(3);
  Apply(Operation::Put("second", "v"));
  Die();
  const int64_t second_us = now_us_;
  now_us_ += 5;
  while (Sweep(3)) {
  }
  journaled_.Read();
  ASSERT_EQ(journaled_.told().size(), 11u);
  for (int i = 0; i < 2; ++i) {
    const std::vector<DeliveredEvent> events = journaled_.ReadRetained(now_us_);
    ASSERT_EQ(events.size(), 11u);
    for (size_t j = 0; j < 10; ++j) {
      EXPECT_EQ(events[j].published_us, first_us);
    }
    EXPECT_EQ(events[10].published_us, second_us);
    journaled_.Crash(now_us_);
  }
}

TEST_F(JournaledSweepTest, AStepFreesNoMoreSegmentsThanItMayWalkRecords) {
  // Each in a segment of its own.
  constexpr int64_t kValueBytes = 300 << 10;
  constexpr int kEntries = 40;
  constexpr int kStep = 4;
  for (int i = 0; i < kEntries; ++i) {
    Apply(Operation::Put(absl::StrCat("k", i), std::string(kValueBytes, 'v')));
  }
  Die();
  const auto memory_bytes = [this] {
    return journaled_.map().GetStatistics(now_us_).memory_bytes;
  };
  int64_t before = memory_bytes();
  EXPECT_GT(before, kEntries * kValueBytes);
  bool more = true;
  while (more) {
    more = Sweep(kStep);
    const int64_t after = memory_bytes();
    // And the table of the segments, with the last of them.
    EXPECT_LE(before - after, kStep * (kValueBytes + 100) + (8 << 10));
    before = after;
  }
  EXPECT_LT(before, kValueBytes);
}

}  // namespace
}  // namespace timecache::server

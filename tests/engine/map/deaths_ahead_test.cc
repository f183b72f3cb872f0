// What of a map dies when.

#include "server/engine/store/deaths_ahead.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class DeathsAheadTest : public ::testing::Test {
 protected:
  DeathsAhead Deaths(size_t max_bars, int64_t within_us = 0) {
    return harness_.map().GetDeaths({max_bars, within_us}, harness_.now_us());
  }
  static std::vector<int64_t> Entries(const DeathsAhead& deaths) {
    std::vector<int64_t> entries;
    for (const auto& bar : deaths.bars) entries.push_back(bar.entries);
    return entries;
  }

  MapHarness harness_{Tens()};
};

TEST_F(DeathsAheadTest, NothingIsThereToDie) {
  const DeathsAhead deaths = Deaths(60);
  EXPECT_THAT(deaths.bars, IsEmpty());
  EXPECT_EQ(deaths.later.entries, 0);
  EXPECT_EQ(deaths.now_us, kStartUs);
}

TEST_F(DeathsAheadTest, BucketsAreMergedToAsManyBars) {
  for (int i = 1; i <= 9; ++i) {
    for (int k = 0; k < i; ++k) {
      harness_.PutFor(absl::StrCat(i, "-", k), "v", i * kSecond);
    }
  }
  EXPECT_THAT(Entries(Deaths(60)), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 9));
  const DeathsAhead deaths = Deaths(4);
  EXPECT_THAT(Entries(deaths), ElementsAre(6, 15, 24));
  EXPECT_EQ(deaths.begin_us, kStartUs);
  EXPECT_EQ(deaths.bar_us, 3 * kSecond);
  EXPECT_EQ(deaths.bars[0].bytes, 6 * 4);
  EXPECT_THAT(Entries(Deaths(1)), ElementsAre(45));
}

TEST_F(DeathsAheadTest, WhatIsBeyondTheTimeThatWasAskedForDiesLater) {
  harness_.PutFor("a", "v", 3 * kSecond);
  harness_.PutFor("b", "v", 4 * kSecond);
  harness_.PutFor("c", "vv", kHour);
  const DeathsAhead deaths = Deaths(60, 4 * kSecond);
  EXPECT_THAT(Entries(deaths), ElementsAre(1, 1));
  EXPECT_EQ(deaths.later.entries, 1);
  EXPECT_EQ(deaths.later.bytes, 3);
  EXPECT_EQ(Deaths(60, kSecond).later.entries, 3);
}

TEST_F(DeathsAheadTest, WhatIsDeadOrGoneDoesNotCount) {
  harness_.PutFor("dead", "v", 2 * kSecond);
  harness_.Put("removed", "v");
  harness_.Put("renewed", "v");
  harness_.Put("there", "v");
  harness_.Apply(Operation::Remove("removed"));
  harness_.Apply(Operation::Touch("renewed").WithTtl(20 * kSecond));
  harness_.Pass(2 * kSecond);
  const DeathsAhead deaths = Deaths(1'000);
  EXPECT_EQ(deaths.begin_us, kStartUs + 9 * kSecond);
  EXPECT_THAT(Entries(deaths), ElementsAre(1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1));
}

// More buckets than one step counts, and none in two.
TEST_F(DeathsAheadTest, ManyBucketsAreCountedInSteps) {
  constexpr int kEntries = 5'000;
  for (int i = 0; i < kEntries; ++i) {
    harness_.PutFor(absl::StrCat(i), "v", (i + 1) * kSecond);
  }
  const DeathsAhead deaths = Deaths(10);
  EXPECT_THAT(deaths.bars, testing::SizeIs(10));
  for (const auto& bar : deaths.bars) EXPECT_EQ(bar.entries, kEntries / 10);
  EXPECT_EQ(deaths.later.entries, 0);
}

// Entries from before keep their deaths, which are no multiples of the new
// width.
TEST_F(DeathsAheadTest, AnotherBucketWidthLosesNone) {
  harness_.PutFor("a", "v", 3 * kSecond);
  harness_.Update(WithBuckets(7 * kSecond, 3));
  harness_.Put("b", "v");
  EXPECT_THAT(Entries(Deaths(60)), ElementsAre(1, 1));
}

}  // namespace
}  // namespace timecache::server

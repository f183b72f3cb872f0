#include "server/engine/shard/live_buckets.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/engine/dice.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

TEST(LiveBucketsTest, CountsEachDeathOnce) {
  LiveBuckets buckets;
  buckets.Add(100);
  buckets.Add(100);
  buckets.Add(200);
  EXPECT_EQ(buckets.size(), 2);
  EXPECT_EQ(buckets.ShardsOf(100), 2u);
  buckets.Remove(100);
  EXPECT_EQ(buckets.size(), 2);
  buckets.Remove(100);
  EXPECT_EQ(buckets.size(), 1);
  EXPECT_EQ(buckets.ShardsOf(100), 0u);
}

// A shard keeps the bucket that it last put into when its last entry goes.
TEST(LiveBucketsTest, ABucketWithoutEntriesIsNotLive) {
  NamespaceOptions options = WithBuckets(10 * kSecond, 11);
  options.num_shards = 8;
  MapHarness harness(options);
  Dice dice(3);
  std::map<int, int64_t> deaths;
  for (int i = 0; i < 5'000; ++i) {
    const int key = static_cast<int>(dice.Index(20));
    if (dice.Index(2) == 0) {
      harness.Apply(Operation::Remove(absl::StrCat("key", key)));
      deaths.erase(key);
    } else {
      harness.Put(absl::StrCat("key", key), "v");
      deaths[key] =
          (harness.now_us() + 10 * kSecond + kSecond - 1) / kSecond * kSecond;
    }
    if (dice.Index(10) == 0) {
      harness.Pass(static_cast<int64_t>(dice.Index(kSecond)));
      std::erase_if(deaths, [&](const auto& one) {
        return one.second <= harness.now_us();
      });
    }
    std::map<int64_t, int> live;
    for (const auto& [name, death_us] : deaths) ++live[death_us];
    ASSERT_EQ(harness.Statistics().live_buckets,
              static_cast<int64_t>(live.size()))
        << "step " << i;
  }
}

}  // namespace
}  // namespace timecache::server

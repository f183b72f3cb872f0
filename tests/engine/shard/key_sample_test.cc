#include "server/engine/shard/key_sample.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

// As a shard that is used evenly.
class Counted {
 public:
  void Use(const std::string& key, int64_t operations, bool wrote,
           int64_t now_us) {
    for (int64_t i = 0; i < operations; ++i) {
      if (--left_ == 0) left_ = sample_.Add(key, wrote, 7, now_us);
    }
  }
  HotKeys Top(size_t keys, int64_t now_us) {
    return sample_.Top(keys, kStartUs, now_us);
  }

 private:
  KeySample sample_{42};
  uint32_t left_ = sample_.FirstInterval();
};

TEST(KeySampleTest, TheMostUsedKeysComeFirst) {
  Counted counted;
  for (int second = 0; second < 30; ++second) {
    const int64_t now_us = kStartUs + second * kSecond;
    counted.Use("hot", 20'000, true, now_us);
    counted.Use("warm", 10'000, false, now_us);
    for (int i = 0; i < 1'000; ++i) {
      counted.Use(absl::StrCat("k", i), 5, false, now_us);
    }
  }
  const HotKeys top = counted.Top(2, kStartUs + 30 * kSecond);
  EXPECT_EQ(top.window_us, 30 * kSecond);
  ASSERT_EQ(top.keys.size(), 2u);
  EXPECT_EQ(top.keys[0].key, "hot");
  EXPECT_NEAR(top.keys[0].writes_per_second, 20'000, 4'000);
  EXPECT_EQ(top.keys[0].reads_per_second, 0);
  EXPECT_EQ(top.keys[0].value_bytes, 7u);
  EXPECT_EQ(top.keys[1].key, "warm");
  EXPECT_NEAR(top.keys[1].reads_per_second, 10'000, 3'000);
  EXPECT_NEAR(top.operations_per_second, 35'000, 4'000);
  EXPECT_LE(top.sampled, KeySample::kMaxSamples);
  EXPECT_GT(top.sampled, KeySample::kMaxSamples / 4);
}

TEST(KeySampleTest, WhatIsOlderThanAMinuteIsForgotten) {
  Counted counted;
  counted.Use("early", 1'000'000, true, kStartUs);
  EXPECT_EQ(counted.Top(9, kStartUs + 59 * kSecond).keys.size(), 1u);
  EXPECT_EQ(counted.Top(9, kStartUs + 60 * kSecond).sampled, 0u);
  // Each one counts again.
  counted.Use("late", 256 * 100, true, kStartUs + 61 * kSecond);
  EXPECT_NEAR(
      static_cast<double>(counted.Top(9, kStartUs + 61 * kSecond).sampled), 100,
      40);
}

TEST(KeySampleTest, LongKeysAreFewer) {
  Counted counted;
  const std::string key(4'096, 'k');
  counted.Use(key, 1'000'000, true, kStartUs);
  const HotKeys top = counted.Top(1, kStartUs + kSecond);
  ASSERT_EQ(top.keys.size(), 1u);
  EXPECT_EQ(top.keys[0].key, key);
  EXPECT_NEAR(top.keys[0].writes_per_second, 1'000'000, 300'000);
  EXPECT_LE(top.sampled * key.size(), KeySample::kMaxKeyBytes);
}

// 2,044 operations on a key are four intervals of its shard at the least.
TEST(KeySampleTest, AMapSamplesItsOperations) {
  MapHarness harness(Tens());
  harness.Put("key", "value");
  for (int i = 0; i < 2'044; ++i) harness.Get("key");
  harness.Pass(kSecond);
  const HotKeys top = harness.map().GetHotKeys(3, harness.now_us());
  ASSERT_EQ(top.keys.size(), 1u);
  EXPECT_EQ(top.keys[0].key, "key");
  EXPECT_EQ(top.keys[0].value_bytes, 5u);
  EXPECT_EQ(top.keys[0].writes_per_second, 0);
  EXPECT_EQ(top.keys[0].reads_per_second, top.operations_per_second);
}

}  // namespace
}  // namespace timecache::server

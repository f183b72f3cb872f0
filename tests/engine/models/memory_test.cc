// What the map asks from the allocator: in proportion to what lives in it,
// whatever was done to it before.

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/effort.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

constexpr int64_t kMapMiB = 1 << 20;

// One shard: the least memory that a map can do with.
NamespaceOptions OneShard(int64_t ttl_us, int num_buckets) {
  NamespaceOptions options = WithBuckets(ttl_us, num_buckets);
  options.num_shards = 1;
  // What died is nobody's here.
  options.retention_us = 0;
  return options;
}

int64_t Memory(TimeCacheMap& map, int64_t now_us) {
  return map.GetStatistics(now_us).memory_bytes;
}

// Advances and sweeps all.
void Sweep(TimeCacheMap& map, int64_t now_us) {
  map.Advance(now_us);
  while (map.Sweep(now_us, 1'000)) {
  }
}

TEST(MemoryTest, AnEmptyMapIsSmall) {
  TimeCacheMap one("one", OneShard(10 * kSecond, 11), nullptr, kStartUs);
  EXPECT_LT(Memory(one, kStartUs), 64 << 10);
  TimeCacheMap usual("usual", WithBuckets(10 * kSecond, 11), nullptr, kStartUs);
  EXPECT_LT(Memory(usual, kStartUs), kMapMiB);
}

TEST(MemoryTest, AnEntryCostsFewBytesBeyondKeyAndValue) {
  constexpr int kEntries = 500'000;
  TimeCacheMap map("map", OneShard(10 * kSecond, 11), nullptr, kStartUs);
  const std::string value(64, 'v');
  for (int i = 0; i < kEntries; ++i) {
    map.Apply(Operation::Put(absl::StrCat(10'000'000 + i), value), kStartUs);
  }
  const auto size = map.GetSize(kStartUs);
  ASSERT_EQ(size.entries, kEntries);
  EXPECT_LE(Memory(map, kStartUs) - size.bytes, kEntries * 26);
}

TEST(MemoryTest, ItIsGivenBackAfterMassDeath) {
  constexpr int kEntries = 200'000;
  TimeCacheMap map("map", OneShard(10 * kSecond, 11), nullptr, kStartUs);
  const std::string value(100, 'v');
  int64_t now_us = kStartUs;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kEntries; ++i) {
      map.Apply(Operation::Put(absl::StrCat("key", i), value), now_us);
    }
    const int64_t full_bytes = Memory(map, now_us);
    EXPECT_GT(full_bytes, kEntries * 100);
    now_us += 20 * kSecond;
    Sweep(map, now_us);
    EXPECT_LT(Memory(map, now_us), full_bytes / 10) << "round " << round;
  }
}

TEST(MemoryTest, ItIsGivenBackAfterMassRemoval) {
  constexpr int kEntries = 100'000;
  TimeCacheMap map("map", OneShard(3600 * kSecond, 11), nullptr, kStartUs);
  const std::string value(100, 'v');
  for (int i = 0; i < kEntries; ++i) {
    map.Apply(Operation::Put(absl::StrCat("key", i), value), kStartUs);
  }
  const int64_t full_bytes = Memory(map, kStartUs);
  for (int i = 0; i < kEntries; ++i) {
    if (i % 100 == 0) continue;
    map.Apply(Operation::Remove(absl::StrCat("key", i)), kStartUs);
  }
  EXPECT_LT(Memory(map, kStartUs), full_bytes / 4)
      << "of " << full_bytes << " bytes one hundredth lives";
}

TEST(MemoryTest, OverwritingWithinABucketLeavesLittleGarbage) {
  constexpr int kOverwrites = test::Rounds(1'000'000);
  for (const int keys : {1, 1'000}) {
    SCOPED_TRACE(keys);
    TimeCacheMap map("map", OneShard(3600 * kSecond, 2), nullptr, kStartUs);
    std::minstd_rand random(1);
    const std::string noise(400, 'n');
    int64_t most_bytes = 0;
    for (int i = 0; i < kOverwrites; ++i) {
      const absl::string_view value =
          absl::string_view(noise).substr(0, random() % noise.size());
      map.Apply(Operation::Put(absl::StrCat("key", i % keys), value), kStartUs);
      if (i % 10'000 == 0) {
        most_bytes = std::max(most_bytes, Memory(map, kStartUs));
      }
    }
    EXPECT_EQ(map.GetSize(kStartUs).entries, keys);
    // Live are half of 400 bytes a key.
    EXPECT_LE(most_bytes, 4 * keys * 200 + 2 * kMapMiB);
  }
}

TEST(MemoryTest, EntriesOfOneSizeFillThePlacesOfOverwrittenOnes) {
  constexpr int kKeys = 20'000;
  constexpr int kOverwrites = test::Rounds(200'000);
  const NamespaceOptions options = OneShard(3600 * kSecond, 101);
  TimeCacheMap map("map", options, nullptr, kStartUs);
  std::minstd_rand random(1);
  const std::string value(200, 'v');
  int64_t now_us = kStartUs;
  int64_t most_bytes = 0;
  for (int i = 0; i < kKeys + kOverwrites; ++i) {
    const int key = i < kKeys ? i : static_cast<int>(random() % kKeys);
    map.Apply(Operation::Put(absl::StrCat("key", kKeys + key), value), now_us);
    if (i % kKeys == 0) now_us += BucketWidthUs(options);
    if (i % 1'000 == 0) most_bytes = std::max(most_bytes, Memory(map, now_us));
  }
  const auto size = map.GetSize(now_us);
  EXPECT_EQ(size.entries, kKeys);
  // Headers, the index, and the segments at the ends of the buckets' chains.
  EXPECT_LE(most_bytes, size.bytes + size.bytes / 4);
}

TEST(MemoryTest, OverwritesInPlaceRemoveTheGarbageOfEarlierOnes) {
  constexpr int kKeys = 20'000;
  constexpr int kPuts = 400'000;
  TimeCacheMap map("map", OneShard(3600 * kSecond, 2), nullptr, kStartUs);
  std::minstd_rand random(1);
  const std::string value(200, 'v');
  // The first overwrite of a key adds its age; later ones are in place.
  for (int i = 0; i < kPuts; ++i) {
    map.Apply(
        Operation::Put(absl::StrCat("key", kKeys + random() % kKeys), value),
        kStartUs + i);
  }
  const auto size = map.GetSize(kStartUs + kPuts);
  EXPECT_EQ(size.entries, kKeys);
  EXPECT_LE(Memory(map, kStartUs + kPuts), size.bytes + size.bytes / 4);
}

TEST(MemoryTest, OverwritingIntoEverNewerBucketsLeavesLittleGarbage) {
  constexpr int kKeys = 10'000;
  constexpr int kRounds = 150;
  const NamespaceOptions options = OneShard(3600 * kSecond, 101);
  TimeCacheMap map("map", options, nullptr, kStartUs);
  std::minstd_rand random(1);
  const std::string value(200, 'v');
  int64_t now_us = kStartUs;
  int64_t most_bytes = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      // A tenth stays behind in each bucket, scattered.
      if (round > 0 && random() % 10 == 0) continue;
      map.Apply(Operation::Put(absl::StrCat("key", i), value), now_us);
    }
    most_bytes = std::max(most_bytes, Memory(map, now_us));
    now_us += BucketWidthUs(options);
    Sweep(map, now_us);
  }
  const auto size = map.GetSize(now_us);
  EXPECT_EQ(size.entries, kKeys);
  EXPECT_LE(most_bytes, 4 * size.bytes + 2 * kMapMiB);
}

TEST(MemoryTest, TouchingRoundAfterRoundLeavesLittleGarbage) {
  constexpr int kKeys = 10'000;
  const NamespaceOptions options = OneShard(3600 * kSecond, 101);
  TimeCacheMap map("map", options, nullptr, kStartUs);
  const std::string value(200, 'v');
  for (int i = 0; i < kKeys; ++i) {
    map.Apply(Operation::Put(absl::StrCat("key", i), value), kStartUs);
  }
  int64_t now_us = kStartUs;
  for (int round = 0; round < 150; ++round) {
    now_us += BucketWidthUs(options) / 2;
    for (int i = 0; i < kKeys; ++i) {
      map.Apply(Operation::Touch(absl::StrCat("key", i)), now_us);
    }
    const int64_t memory_bytes = Memory(map, now_us);
    ASSERT_LE(memory_bytes, 4 * kKeys * 207 + 2 * kMapMiB) << "round " << round;
  }
}

TEST(MemoryTest, ALongTtlAmongNarrowBucketsCostsWhatItHolds) {
  constexpr int kEntries = 10'000;
  NamespaceOptions options = OneShard(kMinTtlUs, 11);
  options.max_ttl_us = kMaxTtlUs;
  ASSERT_EQ(BucketWidthUs(options), kMinBucketWidthUs);
  TimeCacheMap map("map", options, nullptr, kStartUs);
  const int64_t empty_bytes = Memory(map, kStartUs);
  map.Apply(Operation::Put("key", "v").WithTtl(kMaxTtlUs), kStartUs);
  EXPECT_LE(Memory(map, kStartUs) - empty_bytes, 64 << 10);
  // Each in a bucket of its own.
  const std::string value(64, 'v');
  for (int i = 1; i <= kEntries; ++i) {
    map.Apply(Operation::Put(absl::StrCat("key", i), value)
                  .WithTtl(kMaxTtlUs - i * kSecond),
              kStartUs);
  }
  EXPECT_EQ(map.GetStatistics(kStartUs).live_buckets, kEntries + 1);
  EXPECT_LE((Memory(map, kStartUs) - empty_bytes) / kEntries, 310)
      << "bytes an entry that has a bucket of its own";
}

// Also with more than one, its segment fits.
TEST(MemoryTest, AFewEntriesInEachBucketCostLittleMore) {
  constexpr int kEntries = 10'000;
  NamespaceOptions options = OneShard(kMinTtlUs, 11);
  options.max_ttl_us = kMaxTtlUs;
  TimeCacheMap map("map", options, nullptr, kStartUs);
  const int64_t empty_bytes = Memory(map, kStartUs);
  const std::string value(64, 'v');
  for (int i = 1; i <= kEntries; ++i) {
    map.Apply(Operation::Put(absl::StrCat("key", i), value)
                  .WithTtl(kMaxTtlUs - i % (kEntries / 4) * kSecond),
              kStartUs);
  }
  EXPECT_LE((Memory(map, kStartUs) - empty_bytes) / kEntries, 210);
}

TEST(MemoryTest, AShardThatIsEmptyAgainIsSmall) {
  NamespaceOptions options = OneShard(kMinTtlUs, 2);
  options.num_shards = 256;
  MapHarness harness(options);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 256 * 50; ++i) harness.Put(absl::StrCat("key", i), "v");
    harness.Pass(kSecond);
    harness.Sweep();
    EXPECT_LE(Memory(harness.map(), harness.now_us()), 256 * 1'400);
  }
}

TEST(MemoryTest, LargeValuesDoNotStayBehind) {
  NamespaceOptions options = OneShard(10 * kSecond, 11);
  options.max_value_bytes = kMaxValueBytesLimit;
  TimeCacheMap map("map", options, nullptr, kStartUs);
  const std::string value(kMaxValueBytesLimit, 'v');
  for (int i = 0; i < 20; ++i) {
    map.Apply(Operation::Put(
                  "key", absl::string_view(value).substr(0, value.size() - i)),
              kStartUs);
    ASSERT_LE(Memory(map, kStartUs), 4 * kMaxValueBytesLimit);
  }
  map.Apply(Operation::Remove("key"), kStartUs);
  EXPECT_LE(Memory(map, kStartUs), 2 * kMaxValueBytesLimit);
  Sweep(map, kStartUs + 20 * kSecond);
  EXPECT_LE(Memory(map, kStartUs + 20 * kSecond), 2 * kMapMiB);
}

}  // namespace
}  // namespace timecache::server

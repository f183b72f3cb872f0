// The operations of the expiring map, at their limits: what they do is checked
// beside the reference model. When entries die is in expiry_test.cc, limits are
// in limits_test.cc.

#include "server/engine/map/time_cache_map.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/engine/map_harness.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t kTtlUs = 30 * kSecond;

TEST(TimeCacheMapTest, AnErrorNamesTheFieldAndItsLimit) {
  NamespaceOptions options = WithBuckets(kTtlUs, 3);
  options.max_ttl_us = 60 * kSecond;
  options.max_value_bytes = 1'000;
  MapHarness harness(options);
  const std::string most(1'000, 'v');
  const std::string too_large(1'001, 'v');
  const std::string long_key(kMaxKeyBytes + 1, 'k');
  const auto put = [](int64_t ttl_us) {
    return Operation::Put("key", "new").WithTtl(ttl_us);
  };
  EXPECT_TRUE(harness.Apply(put(60 * kSecond)).status.ok());
  EXPECT_TRUE(harness.Apply(put(kMinTtlUs)).status.ok());
  EXPECT_TRUE(harness.Put("key", most).status.ok());
  struct Row {
    Operation op;
    absl::string_view field;
    absl::string_view limit;
  };
  const Row rows[] = {
      {Operation::Put("", "v"), "key", "empty"},
      {Operation::Get(long_key), "key", "4096"},
      {Operation::Remove(long_key), "key", "4096"},
      {Operation::Contains(long_key), "key", "4096"},
      {Operation::Touch(long_key), "key", "4096"},
      {Operation::Put("key", too_large), "value", "1000"},
      {put(0), "ttl", "1ms"},
      {put(-kSecond), "ttl", "1ms"},
      {Operation::Touch("key").WithTtl(kMinTtlUs - 1), "ttl", "1ms"},
      {put(60 * kSecond + 1), "ttl", "1m"},
  };
  for (const Row& row : rows) {
    const absl::Status status = harness.Apply(row.op).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(FieldOf(status), std::string(row.field));
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(std::string(row.field)),
                      HasSubstr(std::string(row.limit))));
  }
  EXPECT_EQ(harness.Get("key"), most);
}

TEST(TimeCacheMapTest, KeysOfOneByteAndOfFourKiBAreTaken) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  const std::string longest(kMaxKeyBytes, 'k');
  const std::string binary("\0", 1);
  EXPECT_TRUE(harness.Put(longest, "long").status.ok());
  EXPECT_TRUE(harness.Put(binary, "nul").status.ok());
  EXPECT_EQ(harness.Get(longest), "long");
  EXPECT_EQ(harness.Get(binary), "nul");
  EXPECT_EQ(harness.Bytes(), kMaxKeyBytes + 1 + 4 + 3);
}

TEST(TimeCacheMapTest, ValuesOfSixteenMiBWhenAllowed) {
  NamespaceOptions options = WithBuckets(kTtlUs, 3);
  options.max_value_bytes = kMaxValueBytesLimit;
  MapHarness harness(options);
  const std::string one(kMaxValueBytesLimit, '1');
  const std::string two(kMaxValueBytesLimit, '2');
  EXPECT_TRUE(harness.Put("one", one).status.ok());
  EXPECT_TRUE(harness.Put("two", two).status.ok());
  EXPECT_TRUE(harness.Get("one") == one);
  EXPECT_TRUE(harness.Get("two") == two);
  EXPECT_EQ(harness.ScanAll().size(), 2u);
  EXPECT_TRUE(harness.Put("one", two).status.ok());
  EXPECT_TRUE(harness.Get("one") == two);
  harness.Pass(2 * kTtlUs);
  EXPECT_EQ(harness.ReadEvents().events.size(), 2u);
  EXPECT_LT(harness.Statistics().memory_bytes, 8 << 20);
}

TEST(TimeCacheMapTest, ScanPagesKeepToTheirBounds) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  for (int i = 0; i < 1'000; ++i) {
    harness.Put(absl::StrCat("key", i), std::string(1'000, 'v'));
  }
  ScanPosition place;
  int64_t entries = 0, bytes = 0, total = 0;
  const auto visit = [&](const EntryView& entry) {
    ++entries;
    ++total;
    bytes += static_cast<int64_t>(entry.key.size() + entry.value.size());
  };
  for (bool more = true; more; entries = bytes = 0) {
    more = harness.map().Scan("", harness.now_us(), 7, 3'000, &place, visit);
    // What belongs to one line of the index more at the most.
    EXPECT_LE(entries, 7 + 64);
    EXPECT_LE(bytes, 3'000 + 64 * 1'006);
  }
  EXPECT_EQ(total, 1'000);
}

// What is there from the first page to the last is visited exactly once,
// whatever the index does meanwhile; the rest at most once.
void ScanWhileOthersComeAndGo(int num_shards, bool grow) {
  constexpr int kStaying = 5'000;
  NamespaceOptions options = WithBuckets(kTtlUs, 3);
  options.num_shards = num_shards;
  MapHarness harness(options);
  int other = 0;
  for (int i = 0; i < kStaying; ++i) {
    harness.Put(absl::StrCat("stay", i), "v");
    if (grow) continue;
    for (int j = 0; j < 10; ++j) harness.Put(absl::StrCat("go", other++), "v");
  }
  std::set<std::string> visited;
  ScanPosition place;
  const auto visit = [&](const EntryView& entry) {
    EXPECT_TRUE(visited.insert(std::string(entry.key)).second)
        << entry.key << " twice";
  };
  while (harness.map().Scan("", harness.now_us(), 50, 1 << 20, &place, visit)) {
    for (int j = 0; j < 500; ++j) {
      if (grow && other < 100'000) {
        harness.Put(absl::StrCat("come", other++), "v");
      } else if (!grow && other > 0) {
        harness.Apply(Operation::Remove(absl::StrCat("go", --other)));
      }
    }
  }
  int staying = 0;
  for (const std::string& key : visited) {
    staying += absl::StartsWith(key, "stay");
  }
  EXPECT_EQ(staying, kStaying);
}

TEST(TimeCacheMapTest, ScanIsExactWhileTheIndexGrowsAndShrinks) {
  for (const int num_shards : {1, 16}) {
    for (const bool grow : {true, false}) {
      ScanWhileOthersComeAndGo(num_shards, grow);
    }
  }
}

TEST(TimeCacheMapTest, ScanIsExactWhileItsEntriesAreOverwrittenAndTouched) {
  constexpr int kKeys = 3'000;
  MapHarness harness(WithBuckets(kTtlUs, 101));
  for (int i = 0; i < kKeys; ++i) harness.Put(absl::StrCat("key", i), "v");
  std::set<std::string> visited;
  ScanPosition place;
  const auto visit = [&](const EntryView& entry) {
    EXPECT_TRUE(visited.insert(std::string(entry.key)).second)
        << entry.key << " twice";
  };
  for (int i = 0;
       harness.map().Scan("", harness.now_us(), 20, 1 << 20, &place, visit);) {
    harness.Pass(10'000);
    for (int j = 0; j < 50; ++j, i = (i + 1) % kKeys) {
      const std::string key = absl::StrCat("key", i);
      if (i % 2 == 0) {
        harness.Put(key, std::string(i % 100, 'x'));
      } else {
        harness.Apply(Operation::Touch(key));
      }
    }
  }
  EXPECT_EQ(visited.size(), static_cast<size_t>(kKeys));
}

// Two of them have one tag, and more come one after the other.
TEST(TimeCacheMapTest, AScanGoesOnBehindEachOfItsEntries) {
  constexpr int kKeys = 5'000;
  NamespaceOptions options = WithBuckets(kTtlUs, 3);
  options.num_shards = 1;
  TimeCacheMap map("map", options, nullptr, kStartUs, {.hash_seed = 7});
  for (int i = 0; i < kKeys; ++i) {
    map.Apply(Operation::Put(absl::StrCat("key", i), "v"), kStartUs);
  }
  std::vector<std::pair<std::string, ScanPosition>> all;
  int of_one_tag = 0;
  ScanPosition place;
  while (map.Scan("", kStartUs, 100, 1 << 20, &place,
                  [&](const ScannedEntry& entry) {
                    of_one_tag += !all.empty() &&
                                  all.back().second.shard == entry.next.shard &&
                                  all.back().second.tag == entry.next.tag;
                    all.emplace_back(std::string(entry.key), entry.next);
                  })) {
  }
  ASSERT_EQ(all.size(), size_t{kKeys});
  EXPECT_GT(of_one_tag, 0);
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    std::string next;
    place = all[i].second;
    while (next.empty() && map.Scan("", kStartUs, 1, 1 << 20, &place,
                                    [&](const ScannedEntry& entry) {
                                      if (next.empty()) {
                                        next = std::string(entry.key);
                                      }
                                    })) {
    }
    ASSERT_EQ(next, all[i + 1].first);
  }
}

TEST(TimeCacheMapTest, APositionIsOfOneMap) {
  MapHarness one(WithBuckets(kTtlUs, 3));
  MapHarness other(WithBuckets(kTtlUs, 3));
  ScanPosition position;
  ASSERT_TRUE(one.map().BeginScan(&position).ok());
  EXPECT_TRUE(one.map().BeginScan(&position).ok());
  EXPECT_EQ(FieldOf(other.map().BeginScan(&position)), "position");
  position.shard = 1 << 20;
  EXPECT_EQ(FieldOf(one.map().BeginScan(&position)), "position");
}

TEST(TimeCacheMapTest, CloseEndsTheCursors) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  const auto cursor = harness.Subscribe(ExpiryLog::Start::kNow);
  EXPECT_FALSE(ReadAll(cursor.get()).closed);
  harness.map().Close();
  EXPECT_TRUE(ReadAll(cursor.get()).closed);
}

TEST(WatermarkTest, OneThatIsYoungEnoughIsNotBroughtUpToDate) {
  MapHarness harness(WithBuckets(10 * kSecond, 11));
  TimeCacheMap& map = harness.map();
  const int64_t start_us = harness.now_us();
  map.RefreshWatermark(start_us);
  const uint64_t before = map.advances();
  map.RefreshWatermark(start_us + 99, 100);
  EXPECT_EQ(map.advances(), before);
  EXPECT_EQ(map.watermark_us(), start_us);
  map.RefreshWatermark(start_us + 100, 100);
  EXPECT_EQ(map.advances(), before + 1);
  EXPECT_EQ(map.watermark_us(), start_us + 100);
  // One that must be exact is.
  map.RefreshWatermark(start_us + 101);
  EXPECT_EQ(map.watermark_us(), start_us + 101);
}

}  // namespace
}  // namespace timecache::server

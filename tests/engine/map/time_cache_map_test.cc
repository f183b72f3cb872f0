// The operations of the expiring map, one behaviour a test. When entries die is
// in expiry_test.cc, limits are in limits_test.cc.

#include "server/engine/map/time_cache_map.h"

#include <optional>
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

using ::testing::HasSubstr;

constexpr int64_t kTtlUs = 30 * kSecond;

Operation When(Operation op, Condition condition, uint64_t version = 0) {
  op.condition = condition;
  op.if_version = version;
  return op;
}

Operation WithPrevious(Operation op) {
  op.return_previous = true;
  return op;
}

void ExpectError(const Result& result, absl::StatusCode code, Reason reason) {
  EXPECT_EQ(result.status.code(), code) << result.status;
  EXPECT_EQ(ReasonOf(result.status), reason);
  EXPECT_FALSE(result.status.message().empty());
  EXPECT_EQ(result.version, 0u);
}

void ExpectMalformed(const Result& result, absl::string_view field,
                     absl::string_view limit) {
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(result.status), std::string(field));
  EXPECT_THAT(std::string(result.status.message()),
              HasSubstr(std::string(field)));
  EXPECT_THAT(std::string(result.status.message()),
              HasSubstr(std::string(limit)));
}

TEST(TimeCacheMapTest, GetFindsWhatWasPut) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  const Result put = harness.Put("key", "value");
  ASSERT_TRUE(put.status.ok()) << put.status;
  EXPECT_FALSE(put.found);
  EXPECT_FALSE(put.has_entry);
  const Result got = harness.Apply(Operation::Get("key"));
  ASSERT_TRUE(got.has_entry);
  EXPECT_EQ(got.entry.value, "value");
  EXPECT_EQ(got.entry.version, put.version);
  EXPECT_EQ(got.entry.put_us, kStartUs);
  EXPECT_EQ(got.entry.deadline_us, kStartUs + kTtlUs);
  EXPECT_EQ(got.version, 0u) << "a plain Get renews nothing";
}

TEST(TimeCacheMapTest, AMissIsNoError) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  for (const Operation& op :
       {Operation::Get("none"), Operation::Remove("none"),
        Operation::Contains("none"), Operation::Touch("none")}) {
    const Result result = harness.Apply(op);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_FALSE(result.found);
    EXPECT_FALSE(result.has_entry);
    EXPECT_EQ(result.version, 0u);
  }
  EXPECT_EQ(harness.Entries(), 0);
}

TEST(TimeCacheMapTest, RemoveRemovesAndMakesNoEvent) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  harness.Put("key", "value");
  const Result removed = harness.Apply(Operation::Remove("key"));
  EXPECT_TRUE(removed.found);
  EXPECT_FALSE(removed.has_entry);
  EXPECT_FALSE(harness.Contains("key"));
  EXPECT_EQ(harness.Entries(), 0);
  EXPECT_EQ(harness.Bytes(), 0);
  harness.Pass(10 * kTtlUs);
  EXPECT_TRUE(harness.ReadEvents().events.empty());
}

TEST(TimeCacheMapTest, ConditionsTable) {
  struct Row {
    Condition condition;
    bool absent_ok;
    bool present_ok;
    std::optional<Reason> absent_reason;
    std::optional<Reason> present_reason;
  };
  const Row rows[] = {
      {Condition::kNone, true, true, {}, {}},
      {Condition::kIfAbsent, true, false, {}, Reason::kKeyExists},
      {Condition::kIfPresent, false, true, Reason::kKeyNotFound, {}},
      {Condition::kIfVersion, false, false, Reason::kKeyNotFound,
       Reason::kVersionMismatch},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.condition));
    MapHarness harness(WithBuckets(kTtlUs, 3));
    harness.Put("present", "old");
    const Result absent =
        harness.Apply(When(Operation::Put("absent", "new"), row.condition));
    const Result present =
        harness.Apply(When(Operation::Put("present", "new"), row.condition));
    EXPECT_EQ(absent.status.ok(), row.absent_ok);
    EXPECT_EQ(present.status.ok(), row.present_ok);
    if (!row.absent_ok) {
      ExpectError(absent, absl::StatusCode::kFailedPrecondition,
                  row.absent_reason.value());
    }
    if (!row.present_ok) {
      ExpectError(present, absl::StatusCode::kFailedPrecondition,
                  row.present_reason.value());
    }
    EXPECT_EQ(harness.Get("absent"), row.absent_ok ? "new" : "(none)");
    EXPECT_EQ(harness.Get("present"), row.present_ok ? "new" : "old");
  }
}

TEST(TimeCacheMapTest, PutIfVersionStoresOverThatVersionOnly) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  const uint64_t first = harness.Put("key", "1").version;
  const Result second = harness.Apply(
      When(Operation::Put("key", "2"), Condition::kIfVersion, first));
  EXPECT_TRUE(second.status.ok()) << second.status;
  ExpectError(harness.Apply(When(Operation::Put("key", "3"),
                                 Condition::kIfVersion, first)),
              absl::StatusCode::kFailedPrecondition, Reason::kVersionMismatch);
  EXPECT_EQ(harness.Get("key"), "2");
}

TEST(TimeCacheMapTest, RemoveIfVersionRemovesThatVersionOnly) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  const uint64_t version = harness.Put("key", "value").version;
  ExpectError(harness.Apply(When(Operation::Remove("key"),
                                 Condition::kIfVersion, version + 1)),
              absl::StatusCode::kFailedPrecondition, Reason::kVersionMismatch);
  EXPECT_TRUE(harness.Contains("key"));
  EXPECT_TRUE(
      harness
          .Apply(When(Operation::Remove("key"), Condition::kIfVersion, version))
          .status.ok());
  ExpectError(harness.Apply(When(Operation::Remove("key"),
                                 Condition::kIfVersion, version)),
              absl::StatusCode::kFailedPrecondition, Reason::kKeyNotFound);
}

TEST(TimeCacheMapTest, TouchIfVersionRenewsThatVersionOnly) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  const uint64_t version = harness.Put("key", "value").version;
  harness.Pass(kSecond);
  ExpectError(harness.Apply(When(Operation::Touch("key"), Condition::kIfVersion,
                                 version + 1)),
              absl::StatusCode::kFailedPrecondition, Reason::kVersionMismatch);
  EXPECT_EQ(harness.Apply(Operation::Get("key")).entry.deadline_us,
            kStartUs + kTtlUs)
      << "nothing is renewed";
  const Result touched = harness.Apply(
      When(Operation::Touch("key"), Condition::kIfVersion, version));
  EXPECT_TRUE(touched.status.ok()) << touched.status;
  EXPECT_TRUE(touched.found);
  EXPECT_EQ(harness.Apply(Operation::Get("key")).entry.deadline_us,
            kStartUs + kSecond + kTtlUs);
  ExpectError(harness.Apply(When(Operation::Touch("other"),
                                 Condition::kIfVersion, version)),
              absl::StatusCode::kFailedPrecondition, Reason::kKeyNotFound);
}

// In place, in another segment and in another bucket.
TEST(TimeCacheMapTest, ARenewalLeavesTheVersionAsItIs) {
  for (const bool sliding : {false, true}) {
    SCOPED_TRACE(sliding);
    NamespaceOptions options = WithBuckets(kTtlUs, 3);
    options.sliding = sliding;
    MapHarness harness(options);
    const uint64_t version = harness.Put("key", "value").version;
    for (const int64_t pass_us : {int64_t{0}, int64_t{1}, kTtlUs / 2}) {
      harness.Pass(pass_us);
      harness.Put("another", "value");
      const Result touched = harness.Apply(Operation::Touch("key"));
      EXPECT_TRUE(touched.found);
      EXPECT_EQ(touched.version, version);
      Operation get = Operation::Get("key");
      get.touch = !sliding;
      const Result got = harness.Apply(get);
      EXPECT_EQ(got.entry.version, version);
      EXPECT_EQ(got.entry.deadline_us, harness.now_us() + kTtlUs);
      EXPECT_EQ(harness.Apply(Operation::Touch("key").WithTtl(kTtlUs)).version,
                version);
    }
    EXPECT_GT(harness
                  .Apply(When(Operation::Put("key", "value"),
                              Condition::kIfVersion, version))
                  .version,
              version)
        << "a put of the same value is a change";
  }
}

TEST(TimeCacheMapTest, ReturnPreviousAnswersWithWhatWasThere) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  const Result fresh = harness.Apply(WithPrevious(Operation::Put("key", "1")));
  EXPECT_FALSE(fresh.found);
  EXPECT_FALSE(fresh.has_entry);
  harness.Pass(kSecond);
  const Result second =
      harness.Apply(WithPrevious(Operation::Put("key", "22")));
  EXPECT_TRUE(second.found);
  ASSERT_TRUE(second.has_entry);
  EXPECT_EQ(second.entry.value, "1");
  EXPECT_EQ(second.entry.version, fresh.version);
  EXPECT_EQ(second.entry.put_us, kStartUs);
  EXPECT_EQ(second.entry.deadline_us, kStartUs + kTtlUs);
  const Result removed = harness.Apply(WithPrevious(Operation::Remove("key")));
  ASSERT_TRUE(removed.has_entry);
  EXPECT_EQ(removed.entry.value, "22");
  EXPECT_EQ(removed.entry.version, second.version);
  EXPECT_EQ(removed.entry.put_us, kStartUs + kSecond);
}

TEST(TimeCacheMapTest, ASameLengthOverwriteReturnsTheOldValueNotTheNewOne) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  harness.Put("key", "old");
  const Result put = harness.Apply(WithPrevious(Operation::Put("key", "new")));
  ASSERT_TRUE(put.has_entry);
  EXPECT_EQ(put.entry.value, "old");
  EXPECT_EQ(harness.Get("key"), "new");
}

TEST(TimeCacheMapTest, VersionsAreUniqueGrowAndStartAtTheCreation) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  std::set<uint64_t> seen;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 500; ++i) {
      const std::string key = absl::StrCat("key", i);
      const uint64_t put = harness.Put(key, "value").version;
      const uint64_t again = harness.Put(key, "other").version;
      EXPECT_GE(put, static_cast<uint64_t>(kStartUs));
      EXPECT_GT(again, put);
      EXPECT_TRUE(seen.insert(put).second);
      EXPECT_TRUE(seen.insert(again).second);
      if (round == 1) harness.Apply(Operation::Remove(key));
    }
  }
}

TEST(TimeCacheMapTest, AMapMadeAgainLaterGivesNoVersionTwice) {
  std::set<uint64_t> seen;
  for (const int64_t created_us : {kStartUs, kStartUs + kSecond}) {
    MapHarness harness(WithBuckets(kTtlUs, 3), created_us);
    for (int i = 0; i < 900; ++i) {
      const uint64_t version = harness.Put("one-key", "v").version;
      if (created_us == kStartUs) {
        seen.insert(version);
      } else {
        EXPECT_EQ(seen.count(version), 0u) << version;
      }
    }
  }
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

TEST(TimeCacheMapTest, AMalformedKeyIsRefusedByEveryOperation) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  const std::string too_long(kMaxKeyBytes + 1, 'k');
  for (const absl::string_view key :
       {absl::string_view(), absl::string_view(too_long)}) {
    for (const Operation& op :
         {Operation::Put(key, "v"), Operation::Get(key), Operation::Remove(key),
          Operation::Contains(key), Operation::Touch(key)}) {
      ExpectMalformed(harness.Apply(op), "key", key.empty() ? "empty" : "4096");
    }
  }
  EXPECT_EQ(harness.Entries(), 0);
}

TEST(TimeCacheMapTest, EmptyValuesAreValues) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  EXPECT_TRUE(harness.Put("key", "").status.ok());
  const Result got = harness.Apply(Operation::Get("key"));
  ASSERT_TRUE(got.has_entry);
  EXPECT_EQ(got.entry.value, "");
  EXPECT_EQ(harness.Entries(), 1);
  EXPECT_EQ(harness.Bytes(), 3);
  harness.Pass(2 * kTtlUs);
  EXPECT_EQ(harness.ReadEvents().Texts(), std::vector<std::string>{"key="});
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

TEST(TimeCacheMapTest, AValueAboveTheLimitIsRefused) {
  NamespaceOptions options = WithBuckets(kTtlUs, 3);
  options.max_value_bytes = 1'000;
  MapHarness harness(options);
  EXPECT_TRUE(harness.Put("key", std::string(1'000, 'v')).status.ok());
  ExpectMalformed(harness.Put("key", std::string(1'001, 'w')), "value", "1000");
  EXPECT_EQ(harness.Get("key"), std::string(1'000, 'v'));
}

TEST(TimeCacheMapTest, AnOwnTtlOutOfItsRangeIsRefusedNeverClamped) {
  NamespaceOptions options = WithBuckets(kTtlUs, 3);
  options.max_ttl_us = 60 * kSecond;
  MapHarness harness(options);
  harness.Put("key", "old");
  for (const int64_t ttl_us : {int64_t{0}, -kSecond, kMinTtlUs - 1}) {
    ExpectMalformed(harness.PutFor("key", "new", ttl_us), "ttl", "1ms");
    ExpectMalformed(harness.Apply(Operation::Touch("key").WithTtl(ttl_us)),
                    "ttl", "1ms");
  }
  ExpectMalformed(harness.PutFor("key", "new", 60 * kSecond + 1), "ttl", "1m");
  EXPECT_EQ(harness.Get("key"), "old");
  EXPECT_TRUE(harness.PutFor("key", "new", 60 * kSecond).status.ok());
  EXPECT_TRUE(harness.PutFor("key", "new", kMinTtlUs).status.ok());
}

TEST(TimeCacheMapTest, SizeCountsKeysAndValuesOverAllShards) {
  for (const int shards : {1, 4, 256}) {
    NamespaceOptions options = WithBuckets(kTtlUs, 3);
    options.num_shards = shards;
    MapHarness harness(options);
    for (int i = 100; i < 200; ++i) {
      harness.Put(absl::StrCat("key", i), "12345");
    }
    EXPECT_EQ(harness.Entries(), 100);
    EXPECT_EQ(harness.Bytes(), 100 * (6 + 5));
    harness.Put("key100", "123");
    EXPECT_EQ(harness.Entries(), 100);
    EXPECT_EQ(harness.Bytes(), 100 * (6 + 5) - 2);
    harness.Apply(Operation::Remove("key100"));
    EXPECT_EQ(harness.Entries(), 99);
    EXPECT_EQ(harness.Bytes(), 99 * (6 + 5));
  }
}

TEST(TimeCacheMapTest, ScanVisitsThePrefixOnly) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  for (const char* key : {"a", "ab", "abc", "abd", "b"}) harness.Put(key, "v");
  EXPECT_EQ(harness.ScanAll().size(), 5u);
  EXPECT_EQ(harness.ScanAll("ab").size(), 3u);
  EXPECT_EQ(harness.ScanAll("abd").size(), 1u);
  EXPECT_EQ(harness.ScanAll("abde").size(), 0u);
  const Scanned all = harness.ScanAll();
  EXPECT_EQ(all.at("abc").value, "v");
  EXPECT_EQ(all.at("abc").put_us, kStartUs);
  EXPECT_EQ(all.at("abc").deadline_us, kStartUs + kTtlUs);
}

TEST(TimeCacheMapTest, ScanOfNothingEnds) {
  MapHarness harness(WithBuckets(kTtlUs, 3));
  EXPECT_TRUE(harness.ScanAll().empty());
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

TEST(TimeCacheMapTest, ScanIsExactWhileTheIndexGrows) {
  ScanWhileOthersComeAndGo(1, true);
  ScanWhileOthersComeAndGo(16, true);
}

TEST(TimeCacheMapTest, ScanIsExactWhileTheIndexShrinks) {
  ScanWhileOthersComeAndGo(1, false);
  ScanWhileOthersComeAndGo(16, false);
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
  TimeCacheMap map("map", options, nullptr, kStartUs, EventFormat::Plain(),
                   {.hash_seed = 7});
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

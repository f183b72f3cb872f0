#include "server/engine/store/partitions.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {
namespace {

TEST(PartitionsTest, ANameIsTakenApartAsItWasMade) {
  for (int i = 0; i < kMaxPartitions; ++i) {
    const std::string name = PartitionName("orders", i);
    EXPECT_EQ(PlaceOf(name).namespace_name, "orders") << name;
    EXPECT_EQ(PlaceOf(name).partition, i) << name;
    EXPECT_TRUE(ValidateMapName(name).ok()) << name;
  }
  EXPECT_EQ(PartitionName("orders", 0), "orders");
  EXPECT_EQ(PartitionName("orders", 12), "orders#12");
}

TEST(PartitionsTest, NamesOfNoPartitionAreRefused) {
  for (const char* name :
       {"", "#1", "orders#", "orders#0", "orders#01", "orders#64", "orders#-1",
        "orders#1#2", "orders# 1", "Orders#1", "orders#x"}) {
    EXPECT_EQ(ValidateMapName(name).code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
}

TEST(PartitionsTest, TheTagOfAKeyIsWhatItsFirstBracesHold) {
  EXPECT_EQ(HashTag("order:{42}:lock"), "42");
  EXPECT_EQ(HashTag("{a}{b}"), "a");
  EXPECT_EQ(HashTag("{{a}}"), "{a");
  for (const char* key :
       {"", "order", "{}order", "order:{42", "}42{", "{}{a}"}) {
    EXPECT_EQ(HashTag(key), key);
  }
}

// Clients compute it, too: it must never change.
TEST(PartitionsTest, TheHashIsThatOfTheTag) {
  constexpr uint32_t kCheck = 0xe3069283;
  for (int count = 1; count <= kMaxPartitions; ++count) {
    EXPECT_EQ(PartitionOfKey("123456789", count),
              static_cast<int>(kCheck % static_cast<uint32_t>(count)));
    EXPECT_EQ(PartitionOfKey("a{123456789}b", count),
              PartitionOfKey("123456789", count));
  }
}

TEST(PartitionsTest, KeysFallOnAllPartitions) {
  std::set<int> used;
  for (int i = 0; i < 1'000; ++i) {
    used.insert(PartitionOfKey(absl::StrCat("key-", i), kMaxPartitions));
  }
  EXPECT_EQ(used.size(), static_cast<size_t>(kMaxPartitions));
}

TEST(PartitionsTest, ASharesLimitsAreTheNamespacesDivided) {
  NamespaceOptions options;
  options.num_partitions = 3;
  options.max_entries = 10;
  options.max_bytes = int64_t{9} << 30;
  options.max_operations_per_second = 1;
  options.idempotency_max_ids = 1'000;
  const NamespaceOptions share = ShareOf(options);
  EXPECT_EQ(share.max_entries, 4);
  EXPECT_EQ(share.max_bytes, int64_t{3} << 30);
  EXPECT_EQ(share.max_operations_per_second, 1);
  EXPECT_EQ(share.retention_bytes, (int64_t{64 << 20} + 2) / 3);
  EXPECT_EQ(share.max_backlog_bytes, (BacklogLimitBytes(options) + 2) / 3);
  EXPECT_EQ(share.idempotency_max_ids, 334);
  EXPECT_EQ(share.ttl_us, options.ttl_us);
}

TEST(PartitionsTest, AShareIsNeverLessThanWhatWorks) {
  NamespaceOptions options;
  options.num_partitions = kMaxPartitions;
  options.retention_bytes = options.change_retention_bytes = kMinRetentionBytes;
  options.max_backlog_bytes = kMinBacklogBytes;
  options.max_entries = INT64_MAX;
  const NamespaceOptions share = ShareOf(options);
  EXPECT_EQ(share.retention_bytes, kMinRetentionBytes);
  EXPECT_EQ(share.change_retention_bytes, kMinRetentionBytes);
  EXPECT_EQ(share.max_backlog_bytes, kMinBacklogBytes);
  EXPECT_EQ(share.max_entries, (INT64_MAX / kMaxPartitions) + 1);
  // Of no limit, too.
  EXPECT_EQ(share.max_bytes, 0);
}

TEST(PartitionsTest, TheShareOfOnePartitionIsAll) {
  NamespaceOptions options;
  options.max_entries = 7;
  EXPECT_EQ(ShareOf(options), options);
}

}  // namespace
}  // namespace timecache::server

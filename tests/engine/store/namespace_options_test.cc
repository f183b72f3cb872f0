#include "server/engine/store/namespace_options.h"

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

constexpr int64_t kOptionSecond = kMicrosPerSecond;

// The error's field and message must both name `field`, and the message
// `limit`.
void ExpectRefused(const NamespaceOptions& options, absl::string_view field,
                   absl::string_view limit) {
  SCOPED_TRACE(std::string(field));
  const absl::Status status = Validate(options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(FieldOf(status), std::string(field));
  EXPECT_EQ(ReasonOf(status), Reason::kInvalidField);
  const std::string message(status.message());
  EXPECT_NE(message.find(std::string(field)), std::string::npos) << message;
  EXPECT_NE(message.find(std::string(limit)), std::string::npos) << message;
}

TEST(OptionsTest, DefaultsAreValidAndAtMostOnePercentLate) {
  const NamespaceOptions options;
  EXPECT_TRUE(Validate(options).ok()) << Validate(options);
  EXPECT_EQ(options.ttl_us, 30 * kOptionSecond);
  EXPECT_EQ(BucketWidthUs(options) * 100, options.ttl_us);
}

// Each field at the ends of its range, and one beyond them.
TEST(OptionsTest, EachFieldHasARangeThatItsErrorNames) {
  struct Row {
    std::function<void(NamespaceOptions*, int64_t)> set;
    std::vector<int64_t> taken;
    absl::string_view field;
    std::vector<std::pair<int64_t, absl::string_view>> refused;
  };
  const auto member = [](auto field) {
    return [field](NamespaceOptions* to, int64_t value) {
      to->*field = static_cast<std::decay_t<decltype(to->*field)>>(value);
    };
  };
  using O = NamespaceOptions;
  const Row rows[] = {
      {[](O* to, int64_t us) {
         to->num_buckets = 2;
         to->max_ttl_us = kMaxTtlUs;
         to->ttl_us = us;
       },
       {kMinTtlUs, kMaxTtlUs},
       "ttl",
       {{kMinTtlUs - 1, "1ms"},
        {0, "1ms"},
        {-kOptionSecond, "1ms"},
        {kMaxTtlUs + 1, "87600h"}}},
      {member(&O::num_buckets),
       {kMinBuckets, kMaxBuckets},
       "num_buckets",
       {{kMinBuckets - 1, "2"},
        {0, "2"},
        {-3, "2"},
        {kMaxBuckets + 1, "100000"}}},
      // No shorter than the ttl.
      {member(&O::max_ttl_us),
       {30 * kOptionSecond, kMaxTtlUs},
       "max_ttl",
       {{30 * kOptionSecond - 1, "30s"}, {kMaxTtlUs + 1, "87600h"}}},
      {member(&O::max_life_us),
       {0, 30 * kOptionSecond, kMaxTtlUs},
       "max_life",
       {{30 * kOptionSecond - 1, "30s"},
        {-1, "30s"},
        {kMaxTtlUs + 1, "87600h"}}},
      {member(&O::idempotency_window_us),
       {0, kMinTtlUs, kMaxIdempotencyWindowUs},
       "idempotency_window",
       {{kMinTtlUs - 1, "1ms"}, {kMaxIdempotencyWindowUs + 1, "168h"}}},
      {member(&O::idempotency_max_ids),
       {kMinIdempotencyIds, kMaxIdempotencyIds},
       "idempotency_max_ids",
       {{kMinIdempotencyIds - 1, "1000"}, {kMaxIdempotencyIds + 1, "1000000"}}},
      {member(&O::change_retention_us),
       {0, kMinTtlUs, kMaxRetentionUs},
       "change_retention",
       {{kMinTtlUs - 1, "1ms"}, {kMaxRetentionUs + 1, "168h"}}},
      {member(&O::change_retention_bytes),
       {kMinRetentionBytes, kMaxRetentionBytes},
       "change_retention_bytes",
       {{kMinRetentionBytes - 1, "1048576"},
        {kMaxRetentionBytes + 1, "68719476736"}}},
      {member(&O::max_entries), {0, INT64_MAX}, "max_entries", {{-1, "0"}}},
      {member(&O::max_bytes), {0, INT64_MAX}, "max_bytes", {{-1, "0"}}},
      {member(&O::max_value_bytes),
       {1, kMaxValueBytesLimit},
       "max_value_bytes",
       {{0, "1"}, {kMaxValueBytesLimit + 1, "16777216"}}},
      {member(&O::retention_us),
       {0, kMaxRetentionUs},
       "event_retention",
       {{-1, "168h"}, {kMaxRetentionUs + 1, "168h"}}},
      {member(&O::retention_bytes),
       {kMinRetentionBytes, kMaxRetentionBytes},
       "event_retention_bytes",
       {{kMinRetentionBytes - 1, "1048576"},
        {kMaxRetentionBytes + 1, "68719476736"}}},
      {member(&O::num_shards),
       {1, 2, 4, 8, 16, 32, 64, 128, kMaxShards},
       "num_shards",
       {{0, "1"}, {2 * kMaxShards, "256"}, {12, "power of two"}}},
      {member(&O::num_partitions),
       {1, 3, kMaxPartitions},
       "num_partitions",
       {{0, "1"}, {kMaxPartitions + 1, "64"}}},
  };
  for (const Row& row : rows) {
    NamespaceOptions options;
    for (const int64_t value : row.taken) {
      row.set(&options, value);
      EXPECT_TRUE(Validate(options).ok()) << row.field << " " << value;
    }
    for (const auto& [value, limit] : row.refused) {
      row.set(&options, value);
      ExpectRefused(options, row.field, limit);
    }
  }
}

TEST(OptionsTest, NoBucketIsNarrowerThanTheLeastWidth) {
  NamespaceOptions options;
  options.ttl_us = 100 * kMinBucketWidthUs;
  options.num_buckets = 101;
  EXPECT_TRUE(Validate(options).ok());
  options.num_buckets = 102;
  // What to do next is in the message: the most buckets for this ttl.
  ExpectRefused(options, "num_buckets", "101");
}

TEST(OptionsTest, NamespaceNames) {
  const std::string longest(63, 'a');
  for (const std::string& name :
       {std::string("a"), std::string("0"), std::string("a-b.c"),
        std::string("user-sessions.eu"), longest}) {
    EXPECT_TRUE(ValidateNamespaceName(name).ok()) << name;
  }
  for (const std::string& name :
       {std::string(), longest + "a", std::string("-a"), std::string("a-"),
        std::string(".a"), std::string("a."), std::string("A"),
        std::string("a_b"), std::string("a b"), std::string("a/b"),
        std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    const absl::Status status = ValidateNamespaceName(name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(FieldOf(status), "namespace");
  }
}

TEST(OptionsTest, WidthIsRoundedDownSoThatTheBoundHolds) {
  NamespaceOptions options;
  options.ttl_us = 10 * kOptionSecond;
  options.num_buckets = 4;
  EXPECT_EQ(BucketWidthUs(options), 3'333'333);
}

TEST(OptionsTest, DeathIsTheFirstMultipleOfTheWidthAtOrAfterTheDeadline) {
  EXPECT_EQ(DeathTimeUs(299, 100), 300);
  EXPECT_EQ(DeathTimeUs(300, 100), 300);
  EXPECT_EQ(DeathTimeUs(301, 100), 400);
}

TEST(OptionsTest, ADurabilityNeedsItsJournal) {
  using D = NamespaceDurability;
  using K = JournalKind;
  for (const K kind : {K::kNone, K::kDisk, K::kCluster}) {
    EXPECT_TRUE(CheckDurability(D::kMemory, kind).ok());
    EXPECT_EQ(CheckDurability(D::kAsync, kind).ok(), kind == K::kDisk);
    EXPECT_EQ(CheckDurability(D::kSync, kind).ok(), kind == K::kDisk);
    EXPECT_EQ(CheckDurability(D::kReplicated, kind).ok(), kind == K::kCluster);
  }
  EXPECT_EQ(CheckDurability(D::kSync, K::kCluster).message(),
            "durability must be replicated or memory: a node of a cluster has "
            "no journal on its disk");
}

}  // namespace
}  // namespace timecache::server

#include "server/engine/store/namespace_options.h"

#include <string>

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

TEST(OptionsTest, Ttl) {
  NamespaceOptions options;
  options.num_buckets = 2;
  options.ttl_us = kMinTtlUs;
  EXPECT_TRUE(Validate(options).ok());
  options.ttl_us = kMaxTtlUs;
  options.max_ttl_us = kMaxTtlUs;
  EXPECT_TRUE(Validate(options).ok());
  options.ttl_us = kMinTtlUs - 1;
  ExpectRefused(options, "ttl", "1ms");
  options.ttl_us = 0;
  ExpectRefused(options, "ttl", "1ms");
  options.ttl_us = -kOptionSecond;
  ExpectRefused(options, "ttl", "1ms");
  options.ttl_us = kMaxTtlUs + 1;
  ExpectRefused(options, "ttl", "87600h");
}

TEST(OptionsTest, NumBuckets) {
  NamespaceOptions options;
  options.num_buckets = kMinBuckets;
  EXPECT_TRUE(Validate(options).ok());
  options.num_buckets = kMaxBuckets;
  EXPECT_TRUE(Validate(options).ok());
  for (const int refused : {kMinBuckets - 1, 0, -3}) {
    options.num_buckets = refused;
    ExpectRefused(options, "num_buckets", "2");
  }
  options.num_buckets = kMaxBuckets + 1;
  ExpectRefused(options, "num_buckets", "100000");
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

TEST(OptionsTest, MaxTtlIsNoShorterThanTtl) {
  NamespaceOptions options;
  options.max_ttl_us = options.ttl_us;
  EXPECT_TRUE(Validate(options).ok());
  options.max_ttl_us = options.ttl_us - 1;
  ExpectRefused(options, "max_ttl", "30s");
  options.max_ttl_us = kMaxTtlUs + 1;
  ExpectRefused(options, "max_ttl", "87600h");
}

TEST(OptionsTest, LimitsAreZeroOrMore) {
  NamespaceOptions options;
  options.max_entries = INT64_MAX;
  options.max_bytes = INT64_MAX;
  EXPECT_TRUE(Validate(options).ok());
  options.max_entries = -1;
  ExpectRefused(options, "max_entries", "0");
  options.max_entries = 0;
  options.max_bytes = -1;
  ExpectRefused(options, "max_bytes", "0");
}

TEST(OptionsTest, MaxValueBytes) {
  NamespaceOptions options;
  options.max_value_bytes = 1;
  EXPECT_TRUE(Validate(options).ok());
  options.max_value_bytes = kMaxValueBytesLimit;
  EXPECT_TRUE(Validate(options).ok());
  options.max_value_bytes = 0;
  ExpectRefused(options, "max_value_bytes", "1");
  options.max_value_bytes = kMaxValueBytesLimit + 1;
  ExpectRefused(options, "max_value_bytes", "16777216");
}

TEST(OptionsTest, Retention) {
  NamespaceOptions options;
  options.retention_us = 0;
  options.retention_bytes = kMinRetentionBytes;
  EXPECT_TRUE(Validate(options).ok());
  options.retention_us = kMaxRetentionUs;
  options.retention_bytes = kMaxRetentionBytes;
  EXPECT_TRUE(Validate(options).ok());
  options.retention_us = -1;
  ExpectRefused(options, "event_retention", "168h");
  options.retention_us = kMaxRetentionUs + 1;
  ExpectRefused(options, "event_retention", "168h");
  options.retention_us = 0;
  options.retention_bytes = kMinRetentionBytes - 1;
  ExpectRefused(options, "event_retention_bytes", "1048576");
  options.retention_bytes = kMaxRetentionBytes + 1;
  ExpectRefused(options, "event_retention_bytes", "68719476736");
}

TEST(OptionsTest, NumShardsIsAPowerOfTwo) {
  NamespaceOptions options;
  for (int shards = 1; shards <= kMaxShards; shards *= 2) {
    options.num_shards = shards;
    EXPECT_TRUE(Validate(options).ok()) << shards;
  }
  options.num_shards = 0;
  ExpectRefused(options, "num_shards", "1");
  options.num_shards = 2 * kMaxShards;
  ExpectRefused(options, "num_shards", "256");
  options.num_shards = 12;
  ExpectRefused(options, "num_shards", "power of two");
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

}  // namespace
}  // namespace timecache::server

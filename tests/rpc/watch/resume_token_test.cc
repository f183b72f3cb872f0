#include "server/rpc/watch/resume_token.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/effort.h"

namespace timecache::server {
namespace {

const std::string kName(63, 'n');
constexpr LogPoint kPoint = {0xfedcba9876543210, 1'234'567, -5};

TEST(ResumeToken, GivesBackWhatWasPutIn) {
  for (const std::string& name : {std::string("a"), kName}) {
    const std::string token = EncodeResumeToken(name, kPoint);
    EXPECT_LE(token.size(), 128u);
    const auto point = DecodeResumeToken(token);
    ASSERT_TRUE(point.ok()) << point.status();
    EXPECT_EQ(point->map, name);
    ASSERT_EQ(point->points.size(), 1u);
    EXPECT_EQ(point->points[0].log_id, kPoint.log_id);
    EXPECT_EQ(point->points[0].next_event, kPoint.next_event);
    EXPECT_EQ(point->points[0].watermark_us, kPoint.watermark_us);
  }
}

// Tokens that clients have stored.
TEST(ResumeToken, OneOfOnePartitionStaysAsItIs) {
  const absl::string_view kToken(
      "\x01"
      "\x01\x00\x00\x00\x00\x00\x00\x00"
      "\x02\x00\x00\x00\x00\x00\x00\x00"
      "\x03\x00\x00\x00\x00\x00\x00\x00"
      "a",
      26);
  EXPECT_EQ(EncodeResumeToken("a", {1, 2, 3}).substr(0, 26), kToken);
  EXPECT_EQ(EncodeResumeToken("a", {1, 2, 3}).size(), 34u);
}

TEST(ResumeToken, HasThePointsOfAllPartitions) {
  for (const uint64_t partitions : {2, 3, 64}) {
    std::vector<LogPoint> points;
    for (uint64_t i = 0; i < partitions; ++i) {
      points.push_back({kPoint.log_id - i, i, -static_cast<int64_t>(i)});
    }
    const std::string token = EncodeResumeToken(kName, points);
    EXPECT_LE(token.size(), 2'048u);
    const auto point = DecodeResumeToken(token);
    ASSERT_TRUE(point.ok()) << point.status();
    EXPECT_EQ(point->map, kName);
    ASSERT_EQ(point->points.size(), partitions);
    for (uint64_t i = 0; i < partitions; ++i) {
      EXPECT_EQ(point->points[i].log_id, points[i].log_id);
      EXPECT_EQ(point->points[i].next_event, points[i].next_event);
      EXPECT_EQ(point->points[i].watermark_us, points[i].watermark_us);
    }
  }
}

void ExpectRefused(const std::string& token) {
  const auto point = DecodeResumeToken(token);
  ASSERT_FALSE(point.ok());
  EXPECT_EQ(point.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(point.status()), "resume_tokens");
}

TEST(ResumeToken, OneThatIsDamagedAnywhereIsRefused) {
  const std::vector<LogPoint> points(3, kPoint);
  for (const std::string& token : {EncodeResumeToken("orders", kPoint),
                                   EncodeResumeToken("orders", points)}) {
    for (size_t length = 0; length < token.size(); ++length) {
      ExpectRefused(token.substr(0, length));
    }
    ExpectRefused(token + "x");
    for (size_t i = 0; i < token.size(); ++i) {
      for (int bit = 0; bit < 8; ++bit) {
        std::string damaged = token;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        ExpectRefused(damaged);
      }
    }
  }
}

TEST(ResumeToken, RandomBytesAreRefused) {
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10'000; ++round) {
    std::string bytes(random() % 128, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (!bytes.empty()) bytes[0] = static_cast<char>(1 + round % 2);
    ExpectRefused(bytes);
  }
}

}  // namespace
}  // namespace timecache::server

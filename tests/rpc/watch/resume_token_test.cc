#include "server/rpc/watch/resume_token.h"

#include <random>
#include <string>

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
    EXPECT_EQ(point->point.log_id, kPoint.log_id);
    EXPECT_EQ(point->point.next_event, kPoint.next_event);
    EXPECT_EQ(point->point.watermark_us, kPoint.watermark_us);
  }
}

void ExpectRefused(const std::string& token) {
  const auto point = DecodeResumeToken(token);
  ASSERT_FALSE(point.ok());
  EXPECT_EQ(point.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FieldOf(point.status()), "resume_tokens");
}

TEST(ResumeToken, OneThatIsDamagedAnywhereIsRefused) {
  const std::string token = EncodeResumeToken("orders", kPoint);
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

TEST(ResumeToken, RandomBytesAreRefused) {
  const uint64_t seed = test::Seed();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10'000; ++round) {
    std::string bytes(random() % 128, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (!bytes.empty()) bytes[0] = 1;
    ExpectRefused(bytes);
  }
}

}  // namespace
}  // namespace timecache::server

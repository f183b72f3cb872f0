// Who may make calls and look into them, and which are slow.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/config/config.h"

namespace timecache::server {
namespace {

using ::testing::StartsWith;

std::string AccessRefusal(absl::string_view yaml) {
  const auto config = ParseConfig(yaml, "t.yaml");
  EXPECT_FALSE(config.ok()) << yaml;
  return std::string(config.status().message());
}

TEST(ConfigAccessTest, WhatTheFileSaysStays) {
  const auto config = ParseConfig(
      "access: {file: /etc/timecached/access.yaml}\n"
      "debug: {reflection: false}\n"
      "log: {slow_call: 0s}\n",
      "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->access().file(), "/etc/timecached/access.yaml");
  EXPECT_FALSE(config->debug().reflection());
  EXPECT_EQ(config->log().slow_call().nanos(), 0);
}

TEST(ConfigAccessTest, SlowCallsAreOfAnHourAtMost) {
  EXPECT_TRUE(ParseConfig("log: {slow_call: 1h}", "t.yaml").ok());
  for (const char* yaml :
       {"log:\n  slow_call: 3600001ms", "log:\n  slow_call: 2h"}) {
    EXPECT_THAT(AccessRefusal(yaml),
                StartsWith("t.yaml:2: log.slow_call: must be"));
  }
}

}  // namespace
}  // namespace timecache::server

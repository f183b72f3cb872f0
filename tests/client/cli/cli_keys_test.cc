// get, rm and scan of many keys, and what they have left to live.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using CliKeysTest = CliTest;

TEST_F(CliKeysTest, GetOfSeveralSaysWhichIsWhich) {
  ASSERT_TRUE(client_.Put("a", "1").ok());
  ASSERT_TRUE(client_.Put("b", "tab\there").ok());
  EXPECT_EQ(Run({"get", "b", "a"}).out, "b\ttab\\x09here\na\t1\n");
  const test::Exit result = Run({"get", "a", "none", "b"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "a\t1\nb\ttab\\x09here\n");
  EXPECT_EQ(result.err, "timecachectl: not found: none\n");
  const test::Exit lines = Run({"get", "a", "none", "--json"});
  EXPECT_EQ(lines.code, 1);
  const size_t end = lines.out.find('\n');
  EXPECT_EQ(json::parse(lines.out.substr(0, end))["value"], "1");
  EXPECT_EQ(json::parse(lines.out.substr(end)),
            json({{"found", false}, {"key", "none"}}));
}

TEST_F(CliKeysTest, WhatIsLeftToLiveIsByTheServersClock) {
  ASSERT_TRUE(client_.Put("a", "1", {.ttl = absl::Milliseconds(90'100)}).ok());
  service_.AdvanceClock(absl::Milliseconds(30'500));
  EXPECT_EQ(Run({"get", "a", "--ttl"}).out, "1\nleft     59.6s\n");
  EXPECT_THAT(Run({"get", "a", "--all"}).out, HasSubstr("\nleft     59.6s\n"));
  EXPECT_EQ(RunJson({"get", "a", "--ttl"})["left_ms"], 59'600);
  EXPECT_EQ(RunJson({"get", "a"}).count("left_ms"), 0u);
  EXPECT_EQ(Run({"scan", "--ttl"}).out, "59.6s\ta\t1\n");
  EXPECT_EQ(Run({"scan", "--ttl", "--keys-only"}).out, "59.6s\ta\n");
  EXPECT_EQ(RunJson({"scan", "--ttl"})["left_ms"], 59'600);
  // Behind its deadline it may live on for a while.
  service_.AdvanceClock(absl::Milliseconds(59'700));
  EXPECT_EQ(RunJson({"get", "a", "--ttl"})["left_ms"], 0);
}

TEST_F(CliKeysTest, RmOfSeveralSaysWhichWereNotThere) {
  for (const char* key : {"a", "b", "c"}) {
    ASSERT_TRUE(client_.Put(key, key).ok());
  }
  EXPECT_EQ(Run({"rm", "a", "b", "--previous"}).out,
            "removed a\nprevious: a\nremoved b\nprevious: b\n");
  const test::Exit result = Run({"rm", "a", "c"});
  EXPECT_EQ(result.code, 1);
  EXPECT_EQ(result.out, "removed c\n");
  EXPECT_EQ(result.err, "timecachectl: not found: a\n");
  EXPECT_EQ(client_.Size()->entries, 0u);
}

TEST_F(CliKeysTest, RmByPrefixRemovesAllOfThemAndNoOther) {
  for (int i = 0; i < 2'500; ++i) {
    ASSERT_TRUE(client_.Put(absl::StrCat("old:", i), "v").ok());
  }
  ASSERT_TRUE(client_.Put("other", "v").ok());
  const test::Exit result = Run({"rm", "--prefix", "old:"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "removed 2,500\n");
  EXPECT_EQ(client_.Size()->entries, 1u);
  EXPECT_EQ(Run({"rm", "--prefix", "old:"}).code, 1);
  EXPECT_EQ(RunJson({"rm", "--prefix", ""}),
            json({{"removed", 1}, {"complete", true}}));
}

TEST_F(CliKeysTest, MoreKeysThanARequestTakesAreAllRead) {
  std::vector<std::string> arguments = {"get"};
  std::string expected;
  for (int i = 0; i < 1'500; ++i) {
    const std::string key = absl::StrCat("key", i);
    ASSERT_TRUE(client_.Put(key, key).ok());
    arguments.push_back(key);
    absl::StrAppend(&expected, key, "\t", key, "\n");
  }
  EXPECT_EQ(Run(arguments).out, expected);
}

}  // namespace
}  // namespace timecache

// batch: many operations of one command line, or of standard input.
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
using ::testing::MatchesRegex;

using CliBatchTest = CliTest;

TEST_F(CliBatchTest, SaysWhatEachOperationDid) {
  ASSERT_TRUE(client_.Put("old", "v").ok());
  const test::Exit result =
      Run({"batch", "put a 'one two' --ttl 5m", "get a", "rm old", "rm none",
           "contains a", "touch a", "append a !", "combine n 3",
           "combine n -- -5", "put a x --if-absent"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out,
              MatchesRegex("put a: stored, version [0-9]+\n"
                           "get a: one two\n"
                           "rm old: removed\n"
                           "rm none: not found\n"
                           "contains a: yes\n"
                           "touch a: touched, version [0-9]+\n"
                           "append a: appended, the value has 8 bytes, version "
                           "[0-9]+\n"
                           "combine n: 3\n"
                           "combine n: -2\n"
                           "put a: failed: the key already exists\n"));
}

TEST_F(CliBatchTest, AtomicIsAllOrNone) {
  ASSERT_TRUE(client_.Put("from", "7").ok());
  const std::vector<std::string> move = {"batch", "--atomic",
                                         "combine from -- -5", "combine to 5",
                                         "contains closed --if-absent"};
  EXPECT_EQ(Run(move).code, 0);
  EXPECT_EQ(client_.Get("to").value()->value, "5");
  ASSERT_TRUE(client_.Put("closed", "").ok());
  const test::Exit refused = Run(move);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, HasSubstr("contains closed: failed: "));
  EXPECT_EQ(client_.Get("to").value()->value, "5");
  EXPECT_EQ(client_.Get("from").value()->value, "2");
  // Of one key each.
  EXPECT_EQ(Run({"batch", "--atomic", "get a", "rm a"}).code, 2);
}

TEST_F(CliBatchTest, JsonHasALineForEach) {
  const test::Exit result = Run(
      {"batch", "--json", "--atomic", "put a 1", "contains b --if-present"});
  EXPECT_EQ(result.code, 1);
  const size_t end = result.out.find('\n');
  const json put = json::parse(result.out.substr(0, end));
  EXPECT_EQ(put["operation"], "put");
  EXPECT_EQ(put["key"], "a");
  EXPECT_EQ(put["error"]["reason"], "NOT_APPLIED");
  EXPECT_EQ(json::parse(result.out.substr(end))["error"]["reason"],
            "KEY_NOT_FOUND");
}

TEST_F(CliBatchTest, AnOperationThatCannotBeReadEndsIt) {
  const test::Exit result = Run({"batch", "put a 1", "put b"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("\"put b\": value is required"));
  EXPECT_EQ(client_.Size()->entries, 0u);
}

}  // namespace
}  // namespace timecache

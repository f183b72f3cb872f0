// ./dev demo NAME: the examples of recipes, on a server of their own.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"

namespace timecache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

test::Exit Demo(const std::vector<std::string>& arguments,
                const std::string& input = "") {
  std::vector<std::string> argv = {DEMO, BUILD_DIR};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return test::ChildProcess(argv, input).Wait();
}

TEST(RecipeExamples, JoinJoinsGenderAndAge) {
  const test::Exit result = Demo({"join"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("joined\t5\tfemale\t25\n"),
                                HasSubstr("joined\t0\tmale\t20\n"),
                                HasSubstr("failed\t4\tmale\t-\n"),
                                Not(HasSubstr("joined\t4"))));
}

TEST(RecipeExamples, JoinTakesSourcesFromStandardInput) {
  const test::Exit result =
      Demo({"join", "name=-", "none=/dev/null"}, "7\tbob\nno tab\n8\tal\n");
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("failed\t7\tbob\t-\n"),
                                HasSubstr("failed\t8\tal\t-\n")));
  EXPECT_EQ(Demo({"join", "name=/no/such/file"}).code, 1);
}

TEST(RecipeExamples, AckerReplaysWhatWasLost) {
  const test::Exit result = Demo({"acker"});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::string lost = "snow white and the seven dwarfs";
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("done\tthe cow jumped over the moon\n"),
                    HasSubstr("failed\t" + lost + "\nemitted\t" + lost +
                              "\ndone\t" + lost + "\n")));
}

TEST(RecipeExamples, EventLogKeepsTheLastChunks) {
  const test::Exit result = Demo({"eventlog"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("new\t3 events, event 9/0"),
                                HasSubstr("between\t"),
                                HasSubstr("; older ones are gone")));
}

}  // namespace
}  // namespace timecache

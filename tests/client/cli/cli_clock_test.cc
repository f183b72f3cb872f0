// timecachectl clock, against a stand-in for the server.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using CliClockTest = CliTest;

TEST_F(CliClockTest, AdvancesByADurationOrToATime) {
  EXPECT_EQ(Run({"clock", "now"}).out, "1970-01-01T00:00:00Z\n");
  EXPECT_EQ(Run({"clock", "advance", "30m"}).out, "1970-01-01T00:30:00Z\n");
  EXPECT_EQ(RunJson({"clock", "advance", "--to", "3600"}),
            json({{"now", "1970-01-01T01:00:00Z"}}));
  EXPECT_EQ(RunJson({"clock", "now"}), json({{"now", "1970-01-01T01:00:00Z"}}));
}

TEST_F(CliClockTest, WrongUsageIsExplained) {
  EXPECT_EQ(Run({"clock", "advance", "--to", "60"}).code, 0);
  const test::Exit back = Run({"clock", "advance", "--to", "30"});
  EXPECT_EQ(back.code, 2);
  EXPECT_THAT(back.err, HasSubstr("must not be before the clock's time"));
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"30m", "--to", "60"}}) {
    std::vector<std::string> arguments = {"clock", "advance"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const test::Exit result = Run(arguments);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.err, HasSubstr("give a duration, or --to"));
  }
}

}  // namespace
}  // namespace timecache

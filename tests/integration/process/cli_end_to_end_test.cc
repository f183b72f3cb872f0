// timecachectl against timecached: what only the real server shows.

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"
#include "tests/support/server_process.h"

namespace timecache::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class CliEndToEndTest : public ::testing::Test {
 protected:
  std::vector<std::string> Argv(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "--address", server_.address()});
    return arguments;
  }
  Exit Run(const std::vector<std::string>& arguments,
           const std::string& input = "") const {
    return RunToEnd(Argv(arguments), input);
  }
  // Runs it with --json; its one line.
  json RunJson(std::vector<std::string> arguments, int code = 0) const {
    arguments.push_back("--json");
    const Exit exit = Run(arguments);
    EXPECT_EQ(exit.code, code) << exit.err;
    const json line = json::parse(exit.out, nullptr, false);
    EXPECT_FALSE(line.is_discarded()) << exit.out << exit.err;
    return line;
  }

  ServerProcess server_;
};

TEST_F(CliEndToEndTest, PutsReadsRenewsAndRemoves) {
  EXPECT_EQ(Run({"put", "a", "one", "--ttl", "1m"}).code, 0);
  const Exit got = Run({"get", "a"});
  EXPECT_EQ(got.code, 0);
  EXPECT_EQ(got.out, "one\n");
  EXPECT_EQ(Run({"contains", "a"}).code, 0);
  EXPECT_EQ(Run({"touch", "a"}).code, 0);
  EXPECT_THAT(Run({"size"}).out, HasSubstr("1"));
  EXPECT_EQ(Run({"rm", "a"}).code, 0);
  for (const char* command : {"get", "contains", "touch", "rm"}) {
    EXPECT_EQ(Run({command, "a"}).code, 1) << command;
  }
}

TEST_F(CliEndToEndTest, ChangesValuesWhereTheyAre) {
  EXPECT_EQ(RunJson({"append", "log", "one,"})["created"], true);
  EXPECT_EQ(RunJson({"append", "log", "two"})["value_bytes"], 7);
  EXPECT_EQ(Run({"get", "log"}).out, "one,two\n");
  EXPECT_EQ(RunJson({"append", "log", "x", "--if-absent"}, 1)["reason"],
            "KEY_EXISTS");
  EXPECT_EQ(Run({"combine", "n", "5", "--initial", "10"}).out, "15\n");
  EXPECT_EQ(Run({"combine", "n", "--", "-20"}).out, "-5\n");
  const Exit removed =
      Run({"combine", "n", "--xor", "--remove-if-zero", "--json", "--", "-5"});
  EXPECT_EQ(json::parse(removed.out, nullptr, false)["removed"], true)
      << removed.out << removed.err;
  EXPECT_EQ(RunJson({"combine", "log", "1"}, 1)["reason"], "NOT_A_NUMBER");
  const std::string deadline = RunJson({"get", "log"})["deadline"];
  EXPECT_EQ(Run({"put", "log", "three", "--keep-deadline"}).code, 0);
  EXPECT_EQ(RunJson({"get", "log"})["deadline"], deadline);
}

TEST_F(CliEndToEndTest, GathersPartsAndLoadsThemFromADump) {
  const auto gather = [](std::vector<std::string> rest) {
    rest.insert(rest.begin(), "gather");
    rest.insert(rest.end(), {"--names", "gender,age"});
    return rest;
  };
  EXPECT_EQ(RunJson(gather({"7", "age", "33"}))["count"], 1);
  EXPECT_EQ(RunJson(gather({"7", "age", "33"}))["duplicate"], true);
  EXPECT_EQ(RunJson(gather({"7", "age", "34"}), 1)["reason"], "PART_EXISTS");
  const json got = RunJson({"get", "7"});
  EXPECT_EQ(got["parts"][0]["name"], "age");
  EXPECT_EQ(got["parts"][0]["value"], "33");
  EXPECT_EQ(got["expected_names"][1]["name"], "gender");
  EXPECT_FALSE(got.contains("value"));
  EXPECT_EQ(Run({"get", "7"}).out, "age=33\n");
  for (const char* format : {"json", "binary"}) {
    SCOPED_TRACE(format);
    const std::string dump = Run({"dump", "--format", format}).out;
    ASSERT_EQ(Run({"rm", "7"}).code, 0);
    const Exit loaded = Run({"load", "-"}, dump);
    ASSERT_EQ(loaded.code, 0) << loaded.err;
    const json again = RunJson({"get", "7"});
    EXPECT_EQ(again["parts"], got["parts"]);
    EXPECT_EQ(again["expected_names"], got["expected_names"]);
  }
  const json complete = RunJson(gather({"7", "gender", "f"}));
  EXPECT_EQ(complete["complete"], true);
  EXPECT_EQ(complete["parts"][1]["value"], "f");
  EXPECT_EQ(Run({"get", "7"}).code, 1);
}

TEST_F(CliEndToEndTest, SaysWhenToComeAgainAfterTooManyOperations) {
  constexpr int kMaxPuts = 100;
  EXPECT_EQ(Run({"ns", "create", "slow", "--max-ops", "1"}).code, 0);
  EXPECT_THAT(Run({"ns", "get", "slow"}).out,
              HasSubstr("max operations per second 1\n"));
  Exit put;
  // One a second may pass, however slow this machine is.
  for (int i = 0; i < kMaxPuts && put.code != 2; ++i) {
    put = Run({"put", "a", "1", "-n", "slow", "--json"});
  }
  const json error = json::parse(put.err, nullptr, false)["error"];
  EXPECT_EQ(error["reason"], "MAX_OPERATION_RATE");
  EXPECT_GT(error["retry_after_ms"], 0);
  EXPECT_LE(error["retry_after_ms"], 1'000);
  EXPECT_EQ(Run({"ns", "update", "slow", "--max-ops", "0"}).code, 0);
  EXPECT_EQ(Run({"put", "a", "1", "-n", "slow"}).code, 0);
}

TEST_F(CliEndToEndTest, SaysWhetherTheServerServes) {
  const Exit serving = Run({"health"});
  EXPECT_EQ(serving.code, 0) << serving.err;
  EXPECT_EQ(serving.out, "SERVING\n");
  EXPECT_EQ(RunJson({"health"}), json({{"status", "SERVING"}}));
  const Exit none =
      RunToEnd({TIMECACHECTL, "--address", "127.0.0.1:1", "health"});
  EXPECT_EQ(none.code, 2);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("no server at "));
}

TEST_F(CliEndToEndTest, TellsWhatIsGoingToDieInTimeToTouchIt) {
  ASSERT_EQ(Run({"ns", "create", "saved", "--ttl", "1h"}).code, 0);
  ASSERT_EQ(Run({"put", "a", "one", "-n", "saved"}).code, 0);
  const json event =
      RunJson({"watch", "saved", "--lead-time", "2h", "--count", "1"});
  EXPECT_EQ(event["type"], "expiring");
  EXPECT_EQ(event["key"], "a");
  EXPECT_GT(event["left_ms"], 3'000'000);
}

TEST_F(CliEndToEndTest, WatchesWhatChanges) {
  ASSERT_EQ(Run({"ns", "create", "prices", "--change-retention", "1h"}).code,
            0);
  ASSERT_EQ(Run({"put", "a", "one", "-n", "prices"}).code, 0);
  ASSERT_EQ(Run({"rm", "a", "-n", "prices"}).code, 0);
  const Exit changes =
      Run({"watch", "prices", "--changes", "--from-earliest", "--count", "2"});
  EXPECT_THAT(changes.out, HasSubstr("\tput\ta\tone\n"));
  EXPECT_THAT(changes.out, HasSubstr("\tremoved\ta\n"));
  EXPECT_THAT(Run({"ns", "get", "prices"}).out,
              HasSubstr("change retention bytes"));
  EXPECT_EQ(Run({"watch", "default", "--changes", "--json"}).code, 2);
}

}  // namespace
}  // namespace timecache::test

// whoami, clients, slow, tail: against a server.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"
#include "tests/support/test_server.h"

namespace timecache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class CliOperatorsTest : public ::testing::Test {
 protected:
  std::vector<std::string> Argv(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {TIMECACHECTL, "--address",
                                         server_.server().addresses().front()});
    return arguments;
  }
  test::Exit Run(std::vector<std::string> arguments) {
    return test::ChildProcess(Argv(std::move(arguments))).Wait();
  }
  // Its output; what a tail shows it only shows while there are calls.
  test::Exit RunDuringPuts(std::vector<std::string> arguments) {
    test::ChildProcess process(Argv(std::move(arguments)));
    std::atomic<bool> stop{false};
    std::thread puts([&] {
      while (!stop) server_.Put("user:7", "value");
    });
    test::Exit result = process.Wait();
    stop = true;
    puts.join();
    return result;
  }

  test::TestServer server_;
};

TEST_F(CliOperatorsTest, WhoAmI) {
  const test::Exit text = Run({"whoami"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(StartsWith("anonymous from ipv4:127.0.0.1:"),
                              HasSubstr("no access rules")));
  const auto json = nlohmann::json::parse(Run({"whoami", "--json"}).out);
  EXPECT_EQ(json["principal"], "anonymous");
  EXPECT_EQ(json["access_rules"], false);
}

TEST_F(CliOperatorsTest, ClientsAreListedAndClosed) {
  server_.Put("a", "1");
  EXPECT_THAT(Run({"clients"}).out,
              AllOf(StartsWith("ID"), HasSubstr("127.0.0.1:"),
                    HasSubstr("anonymous"), HasSubstr("grpc-c++/")));
  const auto json = nlohmann::json::parse(Run({"clients", "--json"}).out);
  ASSERT_GE(json["connections"].size(), 2u);
  const std::string id =
      absl::StrCat(json["connections"][0]["id"].get<uint64_t>());
  const test::Exit closed = Run({"clients", "close", id});
  EXPECT_EQ(closed.code, 0) << closed.err;
  EXPECT_EQ(closed.out, "closed " + id + "\n");
  EXPECT_EQ(Run({"clients", "close", id}).code, 1);
  EXPECT_EQ(Run({"clients", "close", "0"}).code, 2);
}

TEST_F(CliOperatorsTest, SlowCallsThatThereAreNot) {
  const test::Exit result = Run({"slow"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("log.slow_call is off"));
  EXPECT_EQ(Run({"slow", "--json"}).out, "{\"calls\":[]}\n");
}

TEST_F(CliOperatorsTest, TailShowsALineForAnOperation) {
  const test::Exit text = RunDuringPuts({"tail", "user:", "--count", "1"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("  put "), HasSubstr("  ok "),
                              HasSubstr("5 B  user:7"),
                              HasSubstr("anonymous ipv4:127.0.0.1")));
  const test::Exit result = RunDuringPuts({"tail", "--json", "--count", "1"});
  const auto json =
      nlohmann::json::parse(result.out.substr(0, result.out.find('\n')));
  EXPECT_EQ(json["operation"], "put");
  EXPECT_EQ(json["key"], "user:7");
  EXPECT_EQ(json["value_bytes"], 5);
  EXPECT_EQ(json["hit"], true);
}

TEST_F(CliOperatorsTest, TailEndsAfterItsTime) {
  const test::Exit result = Run({"tail", "--timeout", "100ms"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(Run({"tail", "-n", "absent"}).code, 2);
  EXPECT_EQ(Run({"tail", "--max-per-second", "2000"}).code, 2);
}

}  // namespace
}  // namespace timecache

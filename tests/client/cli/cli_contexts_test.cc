// contexts: named servers, and what goes before them.
#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"
#include "tests/support/net/certificates.h"
#include "timecache/v1/data.pb.h"

namespace timecache {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class CliContextsTest : public CliTest {
 protected:
  // Without an address of the test's.
  test::Exit Run(std::vector<std::string> arguments,
                 std::map<std::string, std::string> environment = {}) {
    arguments.insert(arguments.begin(), TIMECACHECTL);
    environment["XDG_CONFIG_HOME"] = directory_.Path("config");
    return test::ChildProcess(arguments, "", environment).Wait();
  }
  std::string File() const {
    return directory_.Path("config/timecached/contexts.json");
  }
  void Add(const std::string& name, const std::string& ns) {
    const test::Exit result = Run(
        {"contexts", "add", name, "--address", service_.address(), "-n", ns});
    EXPECT_EQ(result.code, 0) << result.err;
  }

  const test::TemporaryDirectory directory_;
};

TEST_F(CliContextsTest, TheFirstIsTheCurrentOneUntilAnotherIs) {
  EXPECT_EQ(Run({"contexts", "list"}).out, "there are none\n");
  Add("prod", "orders");
  Add("test", "trials");
  struct stat info;
  ASSERT_EQ(stat(File().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_TRUE(client_.CreateNamespace("orders").ok());
  ASSERT_TRUE(client_.CreateNamespace("trials").ok());
  const auto used =
      [&](std::vector<std::string> arguments,
          const std::map<std::string, std::string>& environment = {}) {
        arguments.insert(arguments.end(), {"put", "a", "1"});
        const test::Exit result = Run(std::move(arguments), environment);
        EXPECT_EQ(result.code, 0) << result.err;
        return service_.Last<v1::PutRequest>().namespace_();
      };
  EXPECT_EQ(used({}), "orders");
  EXPECT_EQ(used({"--context", "test"}), "trials");
  EXPECT_EQ(used({}, {{"TIMECACHED_CONTEXT", "test"}}), "trials");
  // Flags and variables go before.
  EXPECT_EQ(used({"-n", "trials"}), "trials");
  EXPECT_EQ(used({"--context", "test"}, {{"TIMECACHED_NAMESPACE", "orders"}}),
            "orders");
  // Another server has nothing of the current context.
  EXPECT_EQ(used({"--address", service_.address()}), "default");
  EXPECT_EQ(Run({"contexts", "use", "test"}).code, 0);
  EXPECT_EQ(used({}), "trials");
  EXPECT_THAT(Run({"contexts", "list"}).out,
              AllOf(HasSubstr("* test"), HasSubstr("  prod")));
  const auto json =
      nlohmann::json::parse(Run({"contexts", "list", "--json"}).out);
  EXPECT_EQ(json["contexts"][1]["name"], "test");
  EXPECT_EQ(json["contexts"][1]["current"], true);
  EXPECT_EQ(Run({"contexts", "remove", "test"}).code, 0);
  EXPECT_THAT(Run({"contexts", "list"}).out, Not(HasSubstr("*")));
}

TEST_F(CliContextsTest, CredentialsAreKeptByTheNamesOfTheirFiles) {
  const std::string token = directory_.Write("token", "secret");
  EXPECT_EQ(Run({"contexts", "add", "prod", "--address", "a,b:1", "--tls",
                 "--token-file", token, "--server-name", "cache"})
                .code,
            0);
  const auto json =
      nlohmann::json::parse(Run({"contexts", "list", "--json"}).out);
  const auto& prod = json["contexts"][0];
  EXPECT_EQ(prod["address"], "a:7171,b:1");
  EXPECT_EQ(prod["tls"], true);
  EXPECT_EQ(prod["token_file"], token);
  EXPECT_THAT(
      test::RunToEnd({"/bin/cat", File()}).out,
      AllOf(HasSubstr("\"server_name\": \"cache\""), Not(HasSubstr("secret"))));
}

TEST_F(CliContextsTest, WhatCannotBeIsRefused) {
  EXPECT_THAT(Run({"contexts", "add", "prod"}).err, HasSubstr("--address"));
  EXPECT_THAT(Run({"contexts", "add", "a/b", "--address", "a"}).err,
              HasSubstr("letters, digits"));
  EXPECT_THAT(Run({"contexts", "use", "nope"}).err,
              HasSubstr("there is no context \"nope\""));
  EXPECT_EQ(Run({"--context", "nope", "get", "a"}).code, 2);
  Add("prod", "orders");
  directory_.Write("config/timecached/contexts.json", "{");
  EXPECT_THAT(Run({"get", "a"}).err, HasSubstr("is malformed"));
  // What calls no server goes on.
  EXPECT_EQ(Run({"version"}).code, 0);
}

TEST_F(CliContextsTest, TabOffersThem) {
  Add("prod", "orders");
  EXPECT_EQ(Run({"__complete", "--context", "p"}).out, "prod\tcontext\n");
  EXPECT_EQ(Run({"__complete", "contexts", "use", ""}).out, "prod\tcontext\n");
  EXPECT_THAT(Run({"__complete", "contexts", ""}).out, HasSubstr("remove\t"));
}

}  // namespace
}  // namespace timecache

// timecachectl as a process, against a stand-in for the server.

#ifndef TIMECACHED_TESTS_CLIENT_CLI_CLI_FIXTURE_H_
#define TIMECACHED_TESTS_CLIENT_CLI_CLI_FIXTURE_H_

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/fake_service.h"
#include "tests/support/process.h"
#include "timecache/client.h"

namespace timecache {

class CliTest : public ::testing::Test {
 protected:
  std::vector<std::string> Argv(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "--address", service_.address()});
    return arguments;
  }

  test::Exit Run(std::vector<std::string> arguments,
                 const std::string& input = "") const {
    return test::ChildProcess(Argv(std::move(arguments)), input).Wait();
  }

  nlohmann::json RunJson(std::vector<std::string> arguments) const {
    arguments.push_back("--json");
    const test::Exit result = Run(std::move(arguments));
    EXPECT_EQ(result.err, "");
    return nlohmann::json::parse(result.out, nullptr, false);
  }

  FakeService service_;
  Client client_ = service_.MakeClient();
};

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_CLI_CLI_FIXTURE_H_

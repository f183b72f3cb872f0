// The scenarios of this directory, each of them a test.

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/runner.h"
#include "tests/support/process.h"

namespace timecache::conformance {
namespace {

std::vector<Json> Scenarios() {
  std::map<std::string, Json> files;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(SCENARIOS)) {
    if (file.path().extension() != ".json") continue;
    files[file.path().string()] = Json::parse(std::ifstream(file.path()));
  }
  std::vector<Json> scenarios;
  for (const auto& [path, file] : files) {
    for (const Json& scenario : file["scenarios"]) {
      scenarios.push_back(scenario);
    }
  }
  return scenarios;
}

// And whether calls that happen at the same time share a stream.
class Scenario : public testing::TestWithParam<std::tuple<Json, bool>> {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<test::ChildProcess>(
        std::vector<std::string>{TIMECACHED, "--log-format=json",
                                 "--listen=127.0.0.1:0", "--virtual-clock"});
    Json line = Json::object();
    while (line.value("event", "") != "server_started") {
      line = Json::parse(server_->ReadErrorLine());
    }
    address_ = line["address"];
  }
  static void TearDownTestSuite() {
    server_->Signal(SIGTERM);
    server_->Wait();
    server_.reset();
  }

  static std::unique_ptr<test::ChildProcess> server_;
  static std::string address_;
};

std::unique_ptr<test::ChildProcess> Scenario::server_;
std::string Scenario::address_;

TEST_P(Scenario, ComesOut) {
  const auto& [scenario, batching] = GetParam();
  Runner runner(address_, {.batching = batching});
  try {
    runner.Run(scenario);
  } catch (const Mismatch& mismatch) {
    ADD_FAILURE() << mismatch.what();
  }
}

std::string NameOf(const testing::TestParamInfo<std::tuple<Json, bool>>& info) {
  const auto& [scenario, batching] = info.param;
  return scenario["name"].get<std::string>() + (batching ? "" : "Unary");
}

INSTANTIATE_TEST_SUITE_P(Conformance, Scenario,
                         testing::Combine(testing::ValuesIn(Scenarios()),
                                          testing::Bool()),
                         NameOf);

}  // namespace
}  // namespace timecache::conformance

// The scenarios of this directory, each of them a test.

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/conformance/runner.h"
#include "tests/examples/server_process.h"

namespace timecache::conformance {
namespace {

std::vector<Json> Scenarios() {
  std::map<std::string, Json> files;
  for (const auto& file : std::filesystem::directory_iterator(SCENARIOS)) {
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

class Scenario : public testing::TestWithParam<Json> {
 protected:
  static void SetUpTestSuite() {
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--virtual-clock"});
  }
  static void TearDownTestSuite() { server_.reset(); }

  static std::unique_ptr<ServerProcess> server_;
};

std::unique_ptr<ServerProcess> Scenario::server_;

TEST_P(Scenario, ComesOut) {
  Runner runner(server_->address());
  try {
    runner.Run(GetParam());
  } catch (const Mismatch& mismatch) {
    ADD_FAILURE() << mismatch.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Scenario, testing::ValuesIn(Scenarios()),
                         [](const testing::TestParamInfo<Json>& info) {
                           return info.param["name"].get<std::string>();
                         });

}  // namespace
}  // namespace timecache::conformance

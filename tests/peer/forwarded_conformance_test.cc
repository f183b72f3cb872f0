// The scenarios of all clients against nodes each of which serves a third, with
// namespaces of one partition and of several: what clients see is the same, also where
// they go to the owners themselves.

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/main/config/config.h"
#include "tests/conformance/runner.h"
#include "tests/peer/three_nodes.h"

namespace timecache::conformance {
namespace {

struct PartitionsAndScenario {
  int partitions;
  bool owner_routing;
  Json scenario;

  std::string name() const { return scenario["name"].get<std::string>(); }
};
void PrintTo(const PartitionsAndScenario& of, std::ostream* to) {
  *to << of.name() << " of " << of.partitions;
}

// Those for namespaces of so many partitions: without what left_out.json names.
std::vector<PartitionsAndScenario> ScenariosOf(int partitions,
                                               bool owner_routing = false) {
  std::map<std::string, Json> files;
  for (const auto& file :
       std::filesystem::recursive_directory_iterator(SCENARIOS)) {
    if (file.path().extension() != ".json") continue;
    files[file.path().string()] = Json::parse(std::ifstream(file.path()));
  }
  const Json left_out = Json::parse(std::ifstream(LEFT_OUT));
  std::vector<PartitionsAndScenario> scenarios;
  for (const auto& [path, file] : files) {
    for (const Json& scenario : file["scenarios"]) {
      const std::string name = scenario["name"];
      if (left_out["forwarded"].contains(name)) continue;
      if (partitions > 1 && left_out["several_partitions"].contains(name)) {
        continue;
      }
      scenarios.push_back({partitions, owner_routing, scenario});
    }
  }
  return scenarios;
}

// A cluster for each number of partitions that a namespace has by default.
class Forwarded : public ::testing::TestWithParam<PartitionsAndScenario> {
 protected:
  static void TearDownTestSuite() { worlds_.clear(); }

  static test::ThreeNodes& World(int partitions) {
    std::unique_ptr<test::ThreeNodes>& world = worlds_[partitions];
    if (world == nullptr) {
      auto config = server::DefaultConfig();
      config.mutable_listeners(0)->set_address("127.0.0.1:0");
      config.set_default_partitions(static_cast<uint32_t>(partitions));
      world = std::make_unique<test::ThreeNodes>(config);
      const absl::Status started = world->Start();
      EXPECT_TRUE(started.ok()) << started;
    }
    return *world;
  }

 private:
  static std::map<int, std::unique_ptr<test::ThreeNodes>> worlds_;
};

std::map<int, std::unique_ptr<test::ThreeNodes>> Forwarded::worlds_;

TEST_P(Forwarded, ComesOutAsAtTheOwner) {
  const auto& [partitions, owner_routing, scenario] = GetParam();
  const test::ThreeNodes& nodes = World(partitions);
  // Calls that share a stream, and single ones, at a node each.
  const bool batching = partitions > 1;
  Runner runner(batching ? nodes.address() : nodes.other_address(),
                {.batching = batching, .owner_routing = owner_routing});
  try {
    runner.Run(scenario);
  } catch (const Mismatch& mismatch) {
    ADD_FAILURE() << mismatch.what();
  }
}

std::string NameOfCase(
    const ::testing::TestParamInfo<PartitionsAndScenario>& info) {
  return info.param.name();
}

INSTANTIATE_TEST_SUITE_P(OnePartition, Forwarded,
                         ::testing::ValuesIn(ScenariosOf(1)), NameOfCase);
INSTANTIATE_TEST_SUITE_P(SeveralPartitions, Forwarded,
                         ::testing::ValuesIn(ScenariosOf(16)), NameOfCase);
INSTANTIATE_TEST_SUITE_P(OnePartitionRouted, Forwarded,
                         ::testing::ValuesIn(ScenariosOf(1, true)), NameOfCase);
INSTANTIATE_TEST_SUITE_P(SeveralPartitionsRouted, Forwarded,
                         ::testing::ValuesIn(ScenariosOf(16, true)),
                         NameOfCase);

}  // namespace
}  // namespace timecache::conformance

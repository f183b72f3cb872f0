// The scenarios of all clients against a node that has another one answer: what
// clients see is the same.

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/runner.h"
#include "tests/peer/peer_world.h"

namespace timecache::conformance {
namespace {

// Each node answers for itself.
bool IsAboutTheProcess(const Json& scenario) {
  for (const Json& step : scenario["steps"]) {
    const std::string call = step.value("call", "");
    if (call == "get_server" || call == "list_slow_calls") return true;
  }
  return false;
}

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
      if (!IsAboutTheProcess(scenario)) scenarios.push_back(scenario);
    }
  }
  return scenarios;
}

class Forwarded : public ::testing::TestWithParam<Json> {
 protected:
  static void SetUpTestSuite() { world_ = std::make_unique<World>(); }
  static void TearDownTestSuite() { world_.reset(); }

  // On one clock, which the front moves.
  struct World {
    World() {
      server::ServerOptions options;
      options.addresses = {"127.0.0.1:0"};
      options.limits = server::DefaultConfig().limits();
      options.virtual_clock = &clock;
      options.flush = [this] { owner.reaper().Flush(); };
      front = std::make_unique<server::Server>(peers.At(owner.address()),
                                               &clock, std::move(options));
      const absl::Status started = front->Start();
      EXPECT_TRUE(started.ok()) << started;
    }

    server::ManualClock clock{test::kStartUs};
    test::PeerNode owner{&clock};
    server::PeerStores peers{{}};
    std::unique_ptr<server::Server> front;
  };
  static std::unique_ptr<World> world_;
};

std::unique_ptr<Forwarded::World> Forwarded::world_;

TEST_P(Forwarded, ComesOutAsAtTheOwner) {
  Runner runner(world_->front->addresses().at(0), /*batching=*/true);
  try {
    runner.Run(GetParam());
  } catch (const Mismatch& mismatch) {
    ADD_FAILURE() << mismatch.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, Forwarded,
                         ::testing::ValuesIn(Scenarios()),
                         [](const ::testing::TestParamInfo<Json>& info) {
                           return info.param["name"].get<std::string>();
                         });

}  // namespace
}  // namespace timecache::conformance

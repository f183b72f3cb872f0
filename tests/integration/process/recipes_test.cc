// The README's recipes, with timecachectl as they stand there: a lock, and a
// session that is changed only by who has seen its last value.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/support/process.h"
#include "tests/support/server_process.h"
#include "timecache/testing/v1/virtual_clock.grpc.pb.h"

namespace timecache::test {
namespace {

using nlohmann::json;

class RecipesTest : public ::testing::Test {
 protected:
  json Run(std::vector<std::string> arguments, int code = 0) {
    arguments.insert(arguments.begin(),
                     {TIMECACHECTL, "--json", "--address", server_.address()});
    const Exit exit = RunToEnd(arguments, "");
    EXPECT_EQ(exit.code, code) << exit.out << exit.err;
    return json::parse(exit.out, nullptr, false);
  }
  std::string Version(const json& answer) {
    return absl::StrCat(answer.value("version", uint64_t{0}));
  }
  void Pass(int64_t seconds) {
    testing::v1::AdvanceRequest request;
    request.mutable_by()->set_seconds(seconds);
    Must(Call(clock_.get(), &testing::v1::VirtualClockService::Stub::Advance,
              request));
  }

  json Acquire(const std::string& worker, int code = 0) {
    return Run({"put", "lock-7", worker, "--if-absent", "--ttl", "10s"}, code);
  }
  json Renew(const std::string& version, int code = 0) {
    return Run({"touch", "lock-7", "--if-version", version}, code);
  }
  json Release(const std::string& version, int code = 0) {
    return Run({"rm", "lock-7", "--if-version", version}, code);
  }

  ServerProcess server_{{"--virtual-clock", "--listen", "127.0.0.1:0"}};
  std::unique_ptr<testing::v1::VirtualClockService::Stub> clock_ =
      testing::v1::VirtualClockService::NewStub(server_.channel());
};

TEST_F(RecipesTest, ALockIsRenewedByItsHolderAndReleased) {
  const std::string mine = Version(Acquire("worker-a"));
  for (int i = 0; i < 5; ++i) {
    Pass(9);
    EXPECT_EQ(Version(Renew(mine)), mine);
    EXPECT_EQ(Acquire("worker-b", 1)["reason"], "KEY_EXISTS");
  }
  EXPECT_EQ(Release(mine)["removed"], true);
  Acquire("worker-b");
}

// A holder that was away for too long.
TEST_F(RecipesTest, ALockThatAnotherHasTakenIsNeitherRenewedNorReleased) {
  const std::string mine = Version(Acquire("worker-a"));
  Pass(11);
  EXPECT_EQ(Renew(mine, 1)["reason"], "KEY_NOT_FOUND") << "it has expired";
  const std::string others = Version(Acquire("worker-b"));
  Pass(6);
  EXPECT_EQ(Renew(mine, 1)["reason"], "VERSION_MISMATCH");
  EXPECT_EQ(Release(mine, 1)["reason"], "VERSION_MISMATCH");
  EXPECT_EQ(Run({"get", "lock-7"})["value"], "worker-b");
  Pass(5);
  EXPECT_EQ(Renew(others, 1)["reason"], "KEY_NOT_FOUND")
      << "the one that is late has renewed nothing";
}

TEST_F(RecipesTest, ASlidingSessionIsChangedByWhoHasSeenItsLastValue) {
  Run({"ns", "create", "sessions", "--ttl", "30m", "--sliding"});
  const auto in_sessions = [this](std::vector<std::string> arguments,
                                  int code = 0) {
    arguments.insert(arguments.end(), {"-n", "sessions"});
    return Run(arguments, code);
  };
  in_sessions({"put", "s-1", "basket=1"});
  const json seen = in_sessions({"get", "s-1"});
  // Others read it, and touch it, meanwhile.
  for (int i = 0; i < 3; ++i) {
    Pass(20 * 60);
    EXPECT_EQ(in_sessions({"get", "s-1"})["version"], seen["version"]);
    EXPECT_EQ(in_sessions({"touch", "s-1"})["version"], seen["version"]);
  }
  in_sessions({"put", "s-1", "basket=2", "--if-version", Version(seen)});
  EXPECT_EQ(
      in_sessions({"put", "s-1", "basket=9", "--if-version", Version(seen)},
                  1)["reason"],
      "VERSION_MISMATCH");
  EXPECT_EQ(in_sessions({"get", "s-1"})["value"], "basket=2");
}

}  // namespace
}  // namespace timecache::test

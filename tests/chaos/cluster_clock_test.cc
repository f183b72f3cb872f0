// A node whose machine's clock is not the brokers': with the default of
// max_clock_skew it does not become the owner, and says why.

#include <cstddef>
#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"

namespace timecache::test {
namespace {

using ::testing::HasSubstr;

TEST(ClusterClockTest, NodeWhoseClockIsWrongDoesNotTakeOver) {
  TestClusterOptions options;
  options.clocks = {absl::ZeroDuration(), absl::Seconds(30),
                    absl::Seconds(-30)};
  TestCluster cluster(options);
  ASSERT_EQ(cluster.AwaitOwner(), &cluster.node(0));
  for (const size_t wrong : {1, 2}) {
    EXPECT_TRUE(AwaitCluster([&] {
      return TestCluster::HasLogged(cluster.node(wrong), "clock_skewed");
    }));
  }
  cluster.node(0).Kill();
  // Of those that are left, none may.
  for (const size_t wrong : {1, 2}) {
    nlohmann::json status;
    EXPECT_TRUE(AwaitCluster([&] {
      status = TestCluster::Status(cluster.node(wrong).address());
      if (status.is_null()) return false;
      for (const auto& node : status["nodes"]) {
        if (node.value("name", "") == "node0") {
          return node.value("role", "") == "gone";
        }
      }
      return false;
    }));
    EXPECT_THAT(status.dump(),
                HasSubstr("its clock differs from the brokers'"));
  }
  // They have let a failure_timeout, and more, pass.
  cluster.node(0).Start();
  EXPECT_TRUE(
      AwaitCluster([&] { return cluster.Owner() == &cluster.node(0); }));
  for (const size_t wrong : {1, 2}) {
    EXPECT_FALSE(TestCluster::HasLogged(
        cluster.node(0), "ownership_taken by=" + cluster.node(wrong).name()));
  }
}

}  // namespace
}  // namespace timecache::test

// timecachectl cluster: its text, and as a process.
#include <string>

#include "client/cli/ui/cluster_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using cli::ClusterJson;
using cli::ClusterText;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

ClusterInfo TwoNodes() {
  return {.name = "eu",
          .node = "n1",
          .nodes = {{.name = "n1",
                     .address = "a:7171",
                     .version = "0.1.0",
                     .role = NodeRole::kOwner,
                     .since_heartbeat = absl::Microseconds(120'400),
                     .caught_up = true},
                    {.name = "node-2",
                     .address = "b:7171",
                     .version = "0.1.0",
                     .role = NodeRole::kStandby,
                     .since_heartbeat = absl::Milliseconds(80),
                     .lag_messages = 7,
                     .lag_age = absl::Microseconds(1'500'300)}},
          .owner = "n1",
          .claim = 42,
          .owner_since = absl::UnixEpoch() + absl::Hours(1),
          .lease_left = absl::Milliseconds(900),
          .clock_skew = absl::Milliseconds(-3),
          .brokers = {"k:1", "k:2"},
          .wrong_settings = {{.topic = "eu.journal",
                              .setting = "min.insync.replicas",
                              .value = "1",
                              .wanted = "2 or more"}}};
}

TEST(ClusterTextTest, ShowsNodesAndWhatIsWrong) {
  EXPECT_EQ(
      ClusterText("a:7171", TwoNodes()),
      "cluster eu at a:7171: n1 owns, claim 42, since "
      "1970-01-01T01:00:00.000Z\n"
      "n1 answered; its clock is 3ms behind the brokers'; lease 900ms\n"
      "next owner: none, no standby has caught up\n"
      "brokers: k:1, k:2\n"
      "NODE    ROLE     ADDRESS  VERSION  HEARTBEAT  LAG\n"
      "n1      owner    a:7171   0.1.0    120ms      0\n"
      "node-2  standby  b:7171   0.1.0    80ms       7 (1.5s), not caught up\n"
      "wrong: eu.journal: min.insync.replicas is 1, must be 2 or more");
}

TEST(ClusterTextTest, SaysThatNoNodeOwns) {
  ClusterInfo cluster = TwoNodes();
  cluster.owner.clear();
  cluster.owner_since.reset();
  cluster.lease_left.reset();
  cluster.successor = "node-2";
  cluster.waits_for = "the former owner's lease";
  EXPECT_THAT(
      ClusterText("a:7171", cluster),
      AllOf(HasSubstr("eu at a:7171: no node owns\n"),
            HasSubstr("it waits for: the former owner's lease\n"),
            HasSubstr("next owner: node-2\n"), Not(HasSubstr("lease "))));
  const cli::Json json = ClusterJson(cluster);
  EXPECT_EQ(json["owner"], nullptr);
  EXPECT_EQ(json["lease_left_ms"], nullptr);
  EXPECT_EQ(json["successor"], "node-2");
  EXPECT_EQ(json["nodes"][0]["lag_age_ms"], nullptr);
  EXPECT_EQ(json["nodes"][1]["lag_messages"], 7);
  EXPECT_EQ(json["nodes"][1]["lag_age_ms"], 1'500.3);
}

v1::GetClusterResponse ClusterOf(const std::string& owner) {
  v1::GetClusterResponse cluster;
  cluster.set_name("eu");
  cluster.set_node("n1");
  cluster.set_owner(owner);
  for (const char* name : {"n1", "n2"}) {
    v1::ClusterNode& node = *cluster.add_nodes();
    node.set_name(name);
    node.set_role(name == owner ? v1::NODE_ROLE_OWNER : v1::NODE_ROLE_STANDBY);
    node.set_caught_up(true);
  }
  return cluster;
}

TEST_F(CliTest, ClusterStatusExitsByTheOwner) {
  EXPECT_EQ(Run({"cluster", "status"}).code, 2);
  service_.SetCluster(ClusterOf("n1"));
  const test::Exit owned = Run({"cluster", "status"});
  EXPECT_EQ(owned.code, 0) << owned.err;
  EXPECT_THAT(owned.out, HasSubstr("n1 owns"));
  EXPECT_EQ(RunJson({"cluster", "status"})["owner"], "n1");
  service_.SetCluster(ClusterOf(""));
  EXPECT_EQ(Run({"cluster", "status"}).code, 1);
}

TEST_F(CliTest, ClusterHandoverWaitsForTheNextOwner) {
  service_.SetCluster(ClusterOf("n1"));
  const nlohmann::json done = RunJson({"cluster", "handover", "--to", "n2"});
  EXPECT_EQ(done["from"], "n1");
  EXPECT_EQ(done["to"], "n2");
  EXPECT_EQ(done["serves"], true);
  EXPECT_GE(done["took_ms"], 0);
}

TEST_F(CliTest, ClusterHandoverSaysThatTheNextOwnerDoesNotServe) {
  service_.SetCluster(ClusterOf("n1"));
  const test::Exit late =
      Run({"cluster", "handover", "--to", "unknown", "--timeout", "300ms"});
  EXPECT_EQ(late.code, 1) << late.err;
  EXPECT_THAT(late.out, HasSubstr("n1 has released the ownership to unknown, "
                                  "which does not serve after"));
}

}  // namespace
}  // namespace timecache

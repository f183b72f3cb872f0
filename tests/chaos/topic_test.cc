// A cluster whose journal is deleted, and made anew: it has lost what it held.

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

// Whoever begins to read after that finds an empty journal; the control log says
// that there was another.
TEST(ClusterTopicTest, WhoeverHasReadAJournalThatIsMadeAnewSaysSo) {
  TestCluster cluster;
  NamespaceOptions options;
  options.durability = Durability::kReplicated;
  options.ttl = absl::Hours(1);
  cluster.Create("kept", options);
  const Client client = cluster.Caller("kept");
  ASSERT_TRUE(CallUntilOk([&] { return client.Put("key", "value"); }).ok());
  Node* const owner = cluster.AwaitOwner();
  ASSERT_NE(owner, nullptr);
  cluster.brokers().Do("delete test.journal");
  cluster.MakeTopics();
  // A write shows the owner what has become of its journal.
  EXPECT_FALSE(cluster.ImpatientCaller("kept", absl::Seconds(1))
                   .Put("key", "another")
                   .ok());
  EXPECT_TRUE(AwaitCluster([&] {
    // A standby ends, and its machine starts it again.
    cluster.StartEndedNodes();
    return TestCluster::HasLogged(cluster.node(0), "made anew") &&
           TestCluster::HasLogged(cluster.node(1), "made anew") &&
           TestCluster::HasLogged(cluster.node(2), "made anew");
  }));
  // Nobody serves what is left.
  EXPECT_TRUE(AwaitCluster([&] {
    cluster.StartEndedNodes();
    return TestCluster::HasLogged(cluster.node(0),
                                  "lacks what the cluster held") ||
           TestCluster::HasLogged(cluster.node(1),
                                  "lacks what the cluster held") ||
           TestCluster::HasLogged(cluster.node(2),
                                  "lacks what the cluster held");
  }));
  EXPECT_TRUE(AwaitCluster([&] { return cluster.Owner() == nullptr; }));
}

}  // namespace
}  // namespace timecache::test

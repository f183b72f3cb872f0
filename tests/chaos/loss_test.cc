// Brokers that lose what they have acknowledged: nodes do not serve what the
// journal does not have.

#include <cstdio>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

// Writes that the broker which is left does not have.
constexpr int kLost = 20;

std::string ValueOf(const Client& client, const std::string& key) {
  std::string value;
  EXPECT_TRUE(AwaitCluster([&] {
    const auto got = client.Get(key);
    if (got.ok()) value = *got ? (*got)->value : "(none)";
    return got.ok();
  })) << key;
  return value;
}

bool PutSoon(const Client& client, const std::string& key,
             const std::string& value) {
  return AwaitCluster([&] { return client.Put(key, value).ok(); });
}

// As an operator's setting allows it, or a loss of power of all brokers does it:
// the new leader of the journal lacks the last records.
TEST(ClusterLossTest, WhatAnUncleanElectionLosesNobodyServes) {
  TestClusterOptions options;
  options.prepare =
      "create test.journal 1,2 min.insync.replicas=1 "
      "unclean.leader.election.enable=true retention.ms=-1 "
      "message.timestamp.type=LogAppendTime";
  options.allow_unsafe = true;
  TestCluster cluster(options);
  NamespaceOptions ns;
  ns.durability = Durability::kReplicated;
  ns.ttl = absl::Hours(1);
  cluster.Create("kept", ns);
  const Client client = cluster.ImpatientCaller("kept", absl::Seconds(3));
  ASSERT_TRUE(PutSoon(client, "kept", "value"));
  cluster.AwaitWhole();
  Node* const owner = cluster.AwaitOwner();
  ASSERT_NE(owner, nullptr);

  Brokers& brokers = cluster.brokers();
  brokers.Do("kill 2");
  ASSERT_TRUE(PutSoon(client, "kept", "lost"));
  for (int i = 0; i < kLost; ++i) ASSERT_TRUE(PutSoon(client, "lost", "lost"));
  brokers.Do("kill 1");
  brokers.Do("start 2");
  const absl::Time began = absl::Now();
  std::string why;
  EXPECT_TRUE(AwaitCluster([&] {
    why += cluster.StartEndedNodes();
    return client.Put("next", "value").ok();
  }));
  std::fprintf(stderr, "served again after %d ms\n%s",
               static_cast<int>(absl::ToInt64Milliseconds(absl::Now() - began)),
               why.c_str());
  // It drops what it alone has.
  brokers.Do("start 1");
  EXPECT_TRUE(TestCluster::HasLogged(*owner, "its brokers have lost messages"));
  // So it is at whoever owns next.
  for (const bool again : {false, true}) {
    EXPECT_EQ(ValueOf(client, "lost"), "(none)");
    EXPECT_EQ(ValueOf(client, "kept"), "value");
    EXPECT_EQ(ValueOf(client, "next"), "value");
    if (again) break;
    EXPECT_TRUE(AwaitCluster([&] {
      cluster.StartEndedNodes();
      return cluster.IsWhole() && cluster.Owner() != nullptr;
    }));
    Node* const next = cluster.AwaitOwner();
    ASSERT_NE(next, nullptr);
    next->Kill();
  }
}

}  // namespace
}  // namespace timecache::test

// Clients of a node that does not own, and has the owner answer.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "tests/support/process.h"
#include "timecache/client.h"

namespace timecache::test {
namespace {

constexpr absl::Duration kForwardImpatience = absl::Seconds(5);
constexpr int kForwardedPuts = 20;

// By what it says itself: all nodes serve.
bool Owns(const TestCluster& cluster, size_t node, const std::string& name) {
  const auto said =
      cluster.CallerOfOne("default", node, kForwardImpatience).GetCluster();
  return said.ok() && said->owner == name;
}

void ExpectPuts(const Client& caller, const std::string& prefix) {
  for (int i = 0; i < kForwardedPuts; ++i) {
    const auto put = CallUntilOk(
        [&] { return caller.Put(absl::StrCat(prefix, i), prefix); });
    ASSERT_TRUE(put.ok()) << put.status();
  }
}

void ExpectValues(const Client& caller, const std::string& prefix) {
  for (int i = 0; i < kForwardedPuts; ++i) {
    const auto get =
        CallUntilOk([&] { return caller.Get(absl::StrCat(prefix, i)); });
    ASSERT_TRUE(get.ok()) << get.status();
    ASSERT_TRUE(get->has_value());
    EXPECT_EQ((*get)->value, prefix);
  }
}

TEST(ForwardTest, CallsAtAnyNodeSucceedBeforeDuringAndAfterAHandover) {
  TestClusterOptions options;
  options.brokers = 1;
  options.nodes = 2;
  options.config = "cluster: {forward_calls: true}\n";
  TestCluster cluster(std::move(options));
  NamespaceOptions replicated;
  replicated.durability = Durability::kReplicated;
  replicated.ttl = absl::Hours(1);
  cluster.Create("kept", replicated);
  size_t owner = 0;
  EXPECT_TRUE(AwaitCluster([&] {
    owner = Owns(cluster, 0, cluster.node(0).name()) ? 0 : 1;
    return Owns(cluster, owner, cluster.node(owner).name());
  }));
  const size_t standby = 1 - owner;
  const Client at_standby =
      cluster.CallerOfOne("kept", standby, kForwardImpatience);
  ExpectPuts(at_standby, "before");
  ExpectValues(cluster.CallerOfOne("kept", owner, kForwardImpatience),
               "before");

  EXPECT_TRUE(AwaitCluster([&] {
    return RunToEnd({TIMECACHECTL, "--address", cluster.node(owner).address(),
                     "cluster", "handover"})
               .code == 0;
  }));
  // What may or may not be applied is repeated.
  int put_during = 0;
  EXPECT_TRUE(AwaitCluster([&] {
    const auto put =
        at_standby.Put(absl::StrCat("during", put_during), "during");
    EXPECT_TRUE(put.ok() || absl::IsUnavailable(put.status())) << put.status();
    if (put.ok()) ++put_during;
    return put_during == kForwardedPuts;
  }));
  EXPECT_TRUE(AwaitCluster(
      [&] { return Owns(cluster, standby, cluster.node(standby).name()); }));
  ExpectPuts(at_standby, "after");

  // The former owner is a standby, and forwards in its turn.
  const Client at_former =
      cluster.CallerOfOne("kept", owner, kForwardImpatience);
  EXPECT_TRUE(AwaitCluster([&] { return at_former.Get("before0").ok(); }));
  ExpectValues(at_former, "before");
  ExpectValues(at_former, "during");
  ExpectValues(at_former, "after");
}

}  // namespace
}  // namespace timecache::test

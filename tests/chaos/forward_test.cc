// Clients of a node that has others answer for what these own.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "tests/chaos/test_cluster.h"
#include "tests/support/await.h"
#include "tests/support/process.h"
#include "timecache/channel.h"
#include "timecache/client.h"
#include "timecache/v1/namespaces.grpc.pb.h"

namespace timecache::test {
namespace {

using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr absl::Duration kForwardImpatience = absl::Seconds(5);
constexpr int kForwardedPuts = 20;

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

// As the node at this address names them.
std::vector<std::string> OwnersOf(const std::string& name,
                                  const std::string& address) {
  grpc::ClientContext context;
  v1::GetOwnersRequest request;
  request.set_name(name);
  v1::GetOwnersResponse owners;
  const grpc::Status status =
      v1::NamespaceService::NewStub(MakeChannel(address))
          ->GetOwners(&context, request, &owners);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return {owners.addresses().begin(), owners.addresses().end()};
}

// Of one key's partition whichever node owns it: both nodes are called for all keys.
TEST(ForwardTest, CallsAtAnyNodeSucceedBeforeDuringAndAfterAHandover) {
  TestClusterOptions options;
  options.brokers = 1;
  options.nodes = 2;
  options.config =
      "cluster: {forward_calls: true}\nnamespaces: [{name: conf, options: "
      "{ttl: 60s, num_partitions: 16, durability: replicated}}]\n";
  TestCluster cluster(std::move(options));
  NamespaceOptions replicated;
  replicated.durability = Durability::kReplicated;
  replicated.ttl = absl::Hours(1);
  replicated.num_partitions = 16;
  cluster.Create("kept", replicated);
  EXPECT_TRUE(AwaitCluster([&] {
    return cluster.CallerOfOne("conf", 0, kForwardImpatience)
               .Put("x", "y")
               .ok() &&
           cluster.CallerOfOne("conf", 1, kForwardImpatience)
               .GetNamespace("conf")
               .ok();
  }));
  cluster.AwaitWhole();
  EXPECT_GT(cluster.node(0).ServedSlots(), 0u);
  EXPECT_GT(cluster.node(1).ServedSlots(), 0u);
  // Both nodes name the same owners, which are these two.
  const std::vector<std::string> owners =
      OwnersOf("kept", cluster.node(0).address());
  EXPECT_THAT(owners, SizeIs(16));
  EXPECT_THAT(std::set<std::string>(owners.begin(), owners.end()),
              UnorderedElementsAre(cluster.node(0).address(),
                                   cluster.node(1).address()));
  EXPECT_EQ(OwnersOf("kept", cluster.node(1).address()), owners);
  const Client first = cluster.CallerOfOne("kept", 0, kForwardImpatience);
  const Client second = cluster.CallerOfOne("kept", 1, kForwardImpatience);
  ExpectPuts(first, "before");
  ExpectValues(second, "before");

  EXPECT_TRUE(AwaitCluster([&] {
    return RunToEnd({TIMECACHECTL, "--address", cluster.node(0).address(),
                     "cluster", "handover"})
               .code == 0;
  }));
  // What may or may not be applied is repeated.
  int put_during = 0;
  EXPECT_TRUE(AwaitCluster([&] {
    const auto put = first.Put(absl::StrCat("during", put_during), "during");
    EXPECT_TRUE(put.ok() || absl::IsUnavailable(put.status())) << put.status();
    if (put.ok()) ++put_during;
    return put_during == kForwardedPuts;
  }));
  ExpectPuts(second, "after");
  for (const Client* caller : {&first, &second}) {
    ExpectValues(*caller, "before");
    ExpectValues(*caller, "during");
    ExpectValues(*caller, "after");
  }
}

}  // namespace
}  // namespace timecache::test

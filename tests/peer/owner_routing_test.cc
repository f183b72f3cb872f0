// A client that goes to the owners, at nodes each of which serves a third.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/main/config/config.h"
#include "tests/peer/three_nodes.h"
#include "tests/support/await.h"
#include "timecache/batch.h"
#include "timecache/client.h"
#include "timecache/operation.h"

namespace timecache::test {
namespace {

constexpr int kKeys = 200;

class OwnerRoutingAtNodesTest : public ::testing::TestWithParam<bool> {
 protected:
  OwnerRoutingAtNodesTest() : nodes_(Config()) {
    const absl::Status started = nodes_.Start();
    EXPECT_TRUE(started.ok()) << started;
    NamespaceOptions options;
    options.num_partitions = ThreeNodes::kSlots;
    EXPECT_TRUE(client().CreateNamespace("spread", options).ok());
  }

  static config::v1::ServerConfig Config() {
    auto config = server::DefaultConfig();
    config.mutable_listeners(0)->set_address("127.0.0.1:0");
    return config;
  }

  Client client() const {
    return Client(nodes_.address(), {.default_namespace = "spread",
                                     .timeout = absl::Minutes(1),
                                     .batching = GetParam(),
                                     .owner_routing = true});
  }
  static std::string Key(int i) { return absl::StrCat("key-", i); }

  // Single calls and a batch, on keys of all partitions.
  static void CallAll(const Client& client) {
    Batch batch;
    for (int i = 0; i < kKeys; ++i) {
      const auto put = client.Put(Key(i), absl::StrCat(i));
      EXPECT_TRUE(put.ok()) << put.status();
      batch.Add(Operation::Get(Key(i)));
    }
    const auto results = client.Execute(batch);
    ASSERT_TRUE(results.ok()) << results.status();
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_TRUE((*results)[i].entry) << (*results)[i].status;
      EXPECT_EQ((*results)[i].entry->value, absl::StrCat(i));
    }
  }
  // Until no call of these is forwarded.
  void AwaitDirect(const Client& client) const {
    Await([&] {
      const uint64_t before = nodes_.forwarded_calls();
      CallAll(client);
      return nodes_.forwarded_calls() == before;
    });
  }

  ThreeNodes nodes_;
};

INSTANTIATE_TEST_SUITE_P(Unary, OwnerRoutingAtNodesTest,
                         ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Shared, OwnerRoutingAtNodesTest,
                         ::testing::Values(true));

TEST_P(OwnerRoutingAtNodesTest, NoCallIsForwardedOnceTheOwnersAreKnown) {
  const Client routed = client();
  AwaitDirect(routed);
  const uint64_t before = nodes_.forwarded_calls();
  for (int i = 0; i < 10; ++i) CallAll(routed);
  // Whose slots have moved is asked for meanwhile, at the namespace's home.
  EXPECT_LE(nodes_.forwarded_calls(), before + 1);

  const Client plain(nodes_.address(), {.default_namespace = "spread",
                                        .timeout = absl::Minutes(1),
                                        .batching = GetParam()});
  CallAll(plain);
  EXPECT_GT(nodes_.forwarded_calls(), before + kKeys / 2);
}

TEST_P(OwnerRoutingAtNodesTest, SlotsThatMoveCostNoErrorAndAreFollowed) {
  const Client routed = client();
  AwaitDirect(routed);
  std::atomic<bool> is_over = false;
  std::thread caller([&] {
    while (!is_over) CallAll(routed);
  });
  for (size_t turn = 1; turn <= ThreeNodes::kNodes; ++turn) {
    for (size_t slot = 0; slot < ThreeNodes::kSlots; ++slot) {
      nodes_.slots().Move(slot, (slot + turn) % ThreeNodes::kNodes);
    }
  }
  nodes_.slots().Move(0, 1);
  is_over = true;
  caller.join();
  AwaitDirect(routed);
}

}  // namespace
}  // namespace timecache::test

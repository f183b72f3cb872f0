// A node of a cluster: what it answers while it serves, and while another does.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/error.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using grpc::StatusCode;
using ::testing::ElementsAre;
using ServerStub = v1::ServerService::Stub;

constexpr int kServing = 1;
constexpr int kNotServing = 2;

// A server whose cluster is this.
struct FakeCluster {
  TestServerOptions Options() {
    TestServerOptions options;
    options.change = [this](server::ServerOptions* to) {
      to->cluster.check_service = [this]() -> absl::Status {
        if (owns) return absl::OkStatus();
        return server::ErrorWithReason(
            absl::StatusCode::kUnavailable, server::Reason::kNotOwner,
            "another node owns", {{"owner_address", "other:7171"}});
      };
      to->cluster.describe = [](v1::GetClusterResponse* cluster) {
        cluster->set_name("eu");
        cluster->set_owner("other");
      };
      to->cluster.hand_over = [this](const std::string& successor,
                                     server::ClusterSource::HandedOver done) {
        if (successor == "nobody") {
          return done(server::PreconditionFailed(server::Reason::kNoSuccessor,
                                                 "no such standby"));
        }
        owns = false;
        done("other");
      };
      to->cluster.owners_of = [](absl::string_view name, int partitions) {
        return std::vector<std::string>(static_cast<size_t>(partitions),
                                        absl::StrCat(name, ":7171"));
      };
    };
    return options;
  }
  std::atomic<bool> owns{true};
};

void ExpectNotOwner(const grpc::Status& status) {
  const ErrorParts parts = PartsOf(status);
  EXPECT_EQ(parts.code, StatusCode::UNAVAILABLE);
  EXPECT_EQ(parts.reason, v1::NOT_OWNER);
  EXPECT_EQ(parts.metadata.at("owner_address"), "other:7171");
}

v1::PutRequest PutOf(const std::string& key) {
  v1::PutRequest request;
  request.set_namespace_("default");
  request.set_key(key);
  return request;
}

TEST(ClusterService, OnlyTheOwnerServes) {
  FakeCluster cluster;
  TestServer server(cluster.Options());
  server.Put("a", "1");
  cluster.owns = false;
  ExpectNotOwner(
      Call(server.data(), &v1::TimeCacheService::Stub::Put, PutOf("b")).status);
  ExpectNotOwner(Call(server.namespaces(),
                      &v1::NamespaceService::Stub::ListNamespaces,
                      v1::ListNamespacesRequest())
                     .status);
  WatchReader watch(server.data(), "default");
  ExpectNotOwner(watch.Drain());
  Must(Call(server.about(), &ServerStub::GetServer, v1::GetServerRequest()));
  EXPECT_EQ(Must(Call(server.about(), &ServerStub::GetCluster,
                      v1::GetClusterRequest()))
                .owner(),
            "other");
  ExpectNotOwner(
      Call(server.about(), &ServerStub::HandOver, v1::HandOverRequest())
          .status);
  cluster.owns = true;
  EXPECT_EQ(server.Get("a").entry().value(), "1");
}

v1::GetOwnersRequest OwnersOf(const std::string& name) {
  v1::GetOwnersRequest request;
  request.set_name(name);
  return request;
}

TEST(ClusterService, EachPartitionOfANamespaceHasAnOwner) {
  FakeCluster cluster;
  TestServer server(cluster.Options());
  v1::CreateNamespaceRequest create;
  create.set_name("spread");
  create.mutable_options()->set_num_partitions(3);
  Must(Call(server.namespaces(), &v1::NamespaceService::Stub::CreateNamespace,
            create));
  const auto owners =
      Must(Call(server.namespaces(), &v1::NamespaceService::Stub::GetOwners,
                OwnersOf("spread")));
  EXPECT_THAT(owners.addresses(),
              ElementsAre("spread:7171", "spread:7171", "spread:7171"));
  const ErrorParts missing =
      PartsOf(Call(server.namespaces(), &v1::NamespaceService::Stub::GetOwners,
                   OwnersOf("missing"))
                  .status);
  EXPECT_EQ(missing.code, StatusCode::NOT_FOUND);
}

TEST(ClusterService, WhereNoNodesShareTheOwnershipNobodyIsNamed) {
  TestServer server;
  const ErrorParts none =
      PartsOf(Call(server.namespaces(), &v1::NamespaceService::Stub::GetOwners,
                   OwnersOf("default"))
                  .status);
  EXPECT_EQ(none.code, StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(none.reason, v1::NO_CLUSTER);
}

TEST(ClusterService, HealthIsServingOnceItIsSaid) {
  FakeCluster cluster;
  TestServer server(cluster.Options());
  EXPECT_EQ(HealthOf(server.channel()), kNotServing);
  server.server().SetHealth(true);
  EXPECT_EQ(HealthOf(server.channel()), kServing);
  server.server().SetHealth(false);
  EXPECT_EQ(HealthOf(server.channel()), kNotServing);
  server.server().SetNotServing();
  server.server().SetHealth(true);
  EXPECT_EQ(HealthOf(server.channel()), kNotServing);
}

TEST(ClusterService, OpenStreamsEndWithTheService) {
  FakeCluster cluster;
  TestServer server(cluster.Options());
  WatchReader watch(server.data(), "default");
  ASSERT_TRUE(watch.Next().has_value());
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto pipeline = server.data()->Pipeline(&context);
  v1::ExecuteRequest request;
  request.set_namespace_("default");
  request.add_operations()->mutable_put()->set_key("a");
  v1::ExecuteResponse response;
  ASSERT_TRUE(pipeline->Write(request));
  ASSERT_TRUE(pipeline->Read(&response));

  cluster.owns = false;
  server.server().CheckStreams();
  ExpectNotOwner(watch.Drain());
  EXPECT_FALSE(pipeline->Read(&response));
  ExpectNotOwner(pipeline->Finish());
}

TEST(ClusterService, ABatchAfterTheServiceEndsThePipeline) {
  FakeCluster cluster;
  TestServer server(cluster.Options());
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto pipeline = server.data()->Pipeline(&context);
  v1::ExecuteRequest request;
  request.set_namespace_("default");
  request.add_operations()->mutable_put()->set_key("a");
  v1::ExecuteResponse response;
  ASSERT_TRUE(pipeline->Write(request));
  ASSERT_TRUE(pipeline->Read(&response));
  cluster.owns = false;
  request.mutable_operations(0)->mutable_put()->set_key("b");
  ASSERT_TRUE(pipeline->Write(request));
  EXPECT_FALSE(pipeline->Read(&response));
  ExpectNotOwner(pipeline->Finish());
  cluster.owns = true;
  EXPECT_EQ(server.Describe().statistics().entries(), 1);
}

TEST(ClusterService, AStopAfterTheServiceEndsPipelinesWithNotOwner) {
  FakeCluster cluster;
  TestServer server(cluster.Options());
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto pipeline = server.data()->Pipeline(&context);
  v1::ExecuteRequest request;
  request.set_namespace_("default");
  request.add_operations()->mutable_put()->set_key("a");
  v1::ExecuteResponse response;
  ASSERT_TRUE(pipeline->Write(request));
  ASSERT_TRUE(pipeline->Read(&response));
  cluster.owns = false;
  EXPECT_TRUE(server.server().Drain(60 * server::kMicrosPerSecond).in_time);
  EXPECT_FALSE(pipeline->Read(&response));
  ExpectNotOwner(pipeline->Finish());
}

TEST(ClusterService, HandsOver) {
  FakeCluster cluster;
  TestServer server(cluster.Options());
  v1::HandOverRequest request;
  request.set_to("nobody");
  ExpectError(Call(server.about(), &ServerStub::HandOver, request).status,
              StatusCode::FAILED_PRECONDITION, v1::NO_SUCCESSOR,
              "no such standby");
  EXPECT_TRUE(cluster.owns);
  request.clear_to();
  EXPECT_EQ(Must(Call(server.about(), &ServerStub::HandOver, request)).to(),
            "other");
  EXPECT_FALSE(cluster.owns);
}

TEST(ClusterService, AServerOfItsOwnHasNone) {
  TestServer server;
  EXPECT_EQ(HealthOf(server.channel()), kServing);
  ExpectError(
      Call(server.about(), &ServerStub::GetCluster, v1::GetClusterRequest())
          .status,
      StatusCode::FAILED_PRECONDITION, v1::NO_CLUSTER, "--cluster NAME");
  ExpectError(
      Call(server.about(), &ServerStub::HandOver, v1::HandOverRequest()).status,
      StatusCode::FAILED_PRECONDITION, v1::NO_CLUSTER);
  v1::CreateNamespaceRequest create;
  create.set_name("b");
  create.mutable_options()->set_durability(v1::DURABILITY_REPLICATED);
  ExpectInvalid(Call(server.namespaces(),
                     &v1::NamespaceService::Stub::CreateNamespace, create)
                    .status,
                "options.durability", "replicated needs a cluster");
}

}  // namespace
}  // namespace timecache::test

// Handlers in front of a store that completes later, on a thread of its own.
#include "tests/support/delayed_store.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;

using Data = v1::TimeCacheService::Stub;
using Groups = v1::GroupService::Stub;
using Namespaces = v1::NamespaceService::Stub;

class DelayedStoreTest : public ::testing::Test {
 protected:
  TestServerOptions Options() {
    TestServerOptions options;
    options.wrap_store = [this](server::Store* store) {
      auto delayed = std::make_unique<DelayedStore>(store);
      store_ = delayed.get();
      return delayed;
    };
    return options;
  }

  DelayedStore* store_ = nullptr;
  TestServer server_{Options()};
};

TEST_F(DelayedStoreTest, EntriesArePutReadCountedAndWalked) {
  EXPECT_GT(server_.Put("a", "value"), 0u);
  EXPECT_EQ(server_.Get("a").entry().value(), "value");
  const auto size = Must(Call(server_.data(), &Data::Size,
                              Proto<v1::SizeRequest>("namespace: 'default'")));
  EXPECT_EQ(size.entries(), 1u);
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto scan = server_.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  ASSERT_TRUE(scan->Read(&page));
  ASSERT_EQ(page.entries_size(), 1);
  EXPECT_EQ(page.entries(0).key(), "a");
  EXPECT_FALSE(scan->Read(&page));
  EXPECT_TRUE(scan->Finish().ok());
}

TEST_F(DelayedStoreTest, ABatchIsAnswered) {
  const auto response = Must(Call(
      server_.data(), &Data::Execute,
      Proto<v1::ExecuteRequest>("namespace: 'default' "
                                "operations { put { key: 'a' value: 'v' } } "
                                "operations { get { key: 'a' } }")));
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(1).get().entry().value(), "v");
}

// Of a durable namespace: each request waits for its commit alone.
TEST_F(DelayedStoreTest, APipelineAppliesTheNextRequestBeforeTheLastIsStored) {
  constexpr int kRequests = 12;
  store_->HoldAnswers();
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto pipeline = server_.data()->Pipeline(&context);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_TRUE(pipeline->Write(Proto<v1::ExecuteRequest>(absl::StrCat(
        "namespace: 'default' operations { append { key: 'a' value: '", i % 10,
        "' } } operations { get { key: 'a' } }"))));
  }
  store_->AwaitAnswers(4);
  EXPECT_EQ(server_.Get("a").entry().value(), "0123");
  store_->ReleaseAnswers();
  std::string value;
  for (int i = 0; i < kRequests; ++i) {
    v1::ExecuteResponse response;
    ASSERT_TRUE(pipeline->Read(&response));
    absl::StrAppend(&value, i % 10);
    EXPECT_EQ(response.results(1).get().entry().value(), value);
  }
  pipeline->WritesDone();
  EXPECT_TRUE(pipeline->Finish().ok());
}

TEST_F(DelayedStoreTest, ARequestThatFailsLeavesTheAnswersBeforeIt) {
  store_->HoldAnswers();
  grpc::ClientContext context;
  SetDeadline(&context);
  const auto pipeline = server_.data()->Pipeline(&context);
  for (const std::string name : {"default", "default", "none", "default"}) {
    pipeline->Write(Proto<v1::ExecuteRequest>(absl::StrCat(
        "namespace: '", name, "' operations { put { key: 'a' } }")));
  }
  store_->AwaitAnswers(2);
  store_->ReleaseAnswers();
  v1::ExecuteResponse response;
  int answers = 0;
  while (pipeline->Read(&response)) ++answers;
  EXPECT_EQ(answers, 2);
  EXPECT_EQ(pipeline->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(DelayedStoreTest, AClientThatLeavesItsAnswersLeavesTheServerWell) {
  store_->HoldAnswers();
  grpc::ClientContext context;
  const auto pipeline = server_.data()->Pipeline(&context);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(pipeline->Write(Proto<v1::ExecuteRequest>(
        "namespace: 'default' operations { put { key: 'a' } }")));
  }
  store_->AwaitAnswers(2);
  context.TryCancel();
  EXPECT_FALSE(pipeline->Finish().ok());
  store_->ReleaseAnswers();
  EXPECT_TRUE(server_.server().Drain(60 * server::kMicrosPerSecond).in_time);
}

TEST_F(DelayedStoreTest, NamespacesAreAdministered) {
  server_.Create("orders", "ttl { seconds: 10 }");
  EXPECT_EQ(server_.Describe("orders").options().ttl().seconds(), 10);
  const auto updated =
      Must(Call(server_.namespaces(), &Namespaces::UpdateNamespace,
                Proto<v1::UpdateNamespaceRequest>(
                    "namespace { name: 'orders' options { max_entries: 7 } } "
                    "update_mask { paths: 'options.max_entries' }")));
  EXPECT_EQ(updated.namespace_().options().max_entries(), 7u);
  const auto page =
      Must(Call(server_.namespaces(), &Namespaces::ListNamespaces,
                Proto<v1::ListNamespacesRequest>("page_size: 1")));
  ASSERT_EQ(page.namespaces_size(), 1);
  EXPECT_EQ(page.next_page_token(), "default");
  server_.Put("a", "v", 0, "orders");
  EXPECT_EQ(server_.Rotate("orders"), 1u);
  Must(Call(server_.namespaces(), &Namespaces::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'orders'")));
  ASSERT_EQ(server_.observed().size(), 5u);
  EXPECT_EQ(server_.observed().back(), "namespace_deleted orders");
}

TEST_F(DelayedStoreTest, AnErrorOfTheStoreNamesTheRequestsField) {
  const auto reply = Call(server_.namespaces(), &Namespaces::CreateNamespace,
                          Proto<v1::CreateNamespaceRequest>(
                              "name: 'orders' options { num_buckets: 1 }"));
  EXPECT_EQ(PartsOf(reply.status).field, "options.num_buckets");
}

TEST_F(DelayedStoreTest, GroupsAreAdministered) {
  GroupClient group(&server_);
  group.Create("max_attempts: 3");
  const auto updated =
      Must(Call(server_.groups(), &Groups::UpdateGroup,
                Proto<v1::UpdateGroupRequest>(
                    "group { namespace: 'default' name: 'g' "
                    "options { max_attempts: 9 } } "
                    "update_mask { paths: 'options.max_attempts' }")));
  EXPECT_EQ(updated.group().options().max_attempts(), 9u);
  EXPECT_EQ(group.Describe().options().max_attempts(), 9u);
  const auto list =
      Must(Call(server_.groups(), &Groups::ListGroups,
                Proto<v1::ListGroupsRequest>("namespace: 'default'")));
  EXPECT_EQ(list.groups_size(), 1);
  Must(Call(server_.groups(), &Groups::DeleteGroup,
            Proto<v1::DeleteGroupRequest>("namespace: 'default' name: 'g'")));
}

TEST_F(DelayedStoreTest, AMemberJoinsTakesAndSettles) {
  GroupClient group(&server_);
  const auto member = group.Join();
  server_.Put("a", "value");
  server_.AdvanceTo(DeathUs(server_.now_us()));
  const v1::ExpiredEvent event = GroupClient::TakeOne(member.get());
  EXPECT_EQ(event.key(), "a");
  EXPECT_FALSE(group.Settle(event, "ack {}").has_error());
  EXPECT_EQ(group.Statistics().acked(), 1u);
}

TEST_F(DelayedStoreTest, AWatchGetsWhatDiesOnceItIsOpen) {
  WatchReader watch(server_.data(), "default");
  ASSERT_TRUE(watch.Next().has_value());
  server_.Put("a", "value");
  server_.AdvanceTo(DeathUs(server_.now_us()));
  EXPECT_THAT(KeysOf(watch.ReadUpTo(server_.now_us())), ElementsAre("a"));
}

TEST_F(DelayedStoreTest, AWatchOfANamespaceThatIsNotThereEnds) {
  WatchReader watch(server_.data(), "none");
  EXPECT_EQ(watch.Drain().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(DelayedStoreTest, AWatchThatEndsBeforeItIsOpenLeavesNothing) {
  store_->Hold();
  {
    GroupClient group(&server_);
    const auto member = group.Start();
    store_->AwaitCall();
    member->Cancel();
    EXPECT_EQ(member->Drain().error_code(), grpc::StatusCode::CANCELLED);
  }
  store_->Release();
  GroupClient group(&server_);
  group.AwaitMembers(0);
  EXPECT_EQ(server_.Describe().statistics().watchers(), 0u);
  // The next member is given all.
  const auto member = group.Join();
  server_.Put("a", "value");
  server_.AdvanceTo(DeathUs(server_.now_us()));
  EXPECT_EQ(GroupClient::TakeOne(member.get()).key(), "a");
}

TEST_F(DelayedStoreTest, AWatchThatTheStoreKeepsNeedsNoServer) {
  store_->Hold();
  WatchReader watch(server_.data(), "default");
  store_->AwaitCall();
  watch.Cancel();
  EXPECT_EQ(watch.Drain().error_code(), grpc::StatusCode::CANCELLED);
  // The store completes its call after the server's end.
}

}  // namespace
}  // namespace timecache::test

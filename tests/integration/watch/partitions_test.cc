// Watches and groups of a namespace of several partitions, as clients have them.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr char kName[] = "parts";

class PartitionsTest : public ::testing::Test {
 protected:
  PartitionsTest() { server_.Create(kName, "num_partitions: 4"); }

  // Entries that die at once.
  void Kill(int count) {
    for (int i = 0; i < count; ++i) {
      server_.Put(absl::StrCat("key-", ++keys_), "value", 0, kName);
    }
    server_.AdvanceBy(2 * kTtlUs);
  }
  std::unique_ptr<WatchReader> Watch(const std::string& token = "") {
    v1::WatchExpiredRequest request;
    request.add_namespaces(kName);
    if (!token.empty()) request.add_resume_tokens(token);
    return std::make_unique<WatchReader>(server_.data(), request);
  }

  TestServer server_;
  GroupClient client_{&server_};
  int keys_ = 0;
};

TEST_F(PartitionsTest, AWatchHasEachEventOnceAndResumes) {
  std::set<std::string> keys;
  std::string token;
  for (int watch = 0; watch < 4; ++watch) {
    const auto reader = Watch(token);
    if (watch == 0) reader->ReadUpTo(server_.now_us(), kName);
    Kill(100);
    for (const auto& event : reader->ReadUpTo(server_.now_us(), kName)) {
      EXPECT_EQ(event.namespace_(), kName);
      EXPECT_TRUE(keys.insert(event.key()).second) << event.key();
    }
    token = reader->token(kName);
    EXPECT_LE(token.size(), 2'048u);
    EXPECT_GT(token.size(), 4 * 24u);
  }
  EXPECT_THAT(keys, SizeIs(400));
}

TEST_F(PartitionsTest, ATokenOfAnotherNumberOfPartitionsIsOfAnotherLog) {
  std::string token;
  {
    const auto reader = Watch();
    reader->ReadUpTo(server_.now_us(), kName);
    token = reader->token(kName);
  }
  for (const char* partitions : {"1", "3", "8"}) {
    v1::DeleteNamespaceRequest request;
    request.set_name(kName);
    v1::DeleteNamespaceResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(server_.namespaces()
                    ->DeleteNamespace(&context, request, &response)
                    .ok());
    server_.Create(kName, absl::StrCat("num_partitions: ", partitions));
    const grpc::Status status = Watch(token)->Drain();
    ExpectError(status, grpc::StatusCode::FAILED_PRECONDITION, v1::LOG_CHANGED,
                "another log");
    EXPECT_EQ(PartsOf(status).metadata.at("namespace"), kName);
  }
}

TEST_F(PartitionsTest, AMemberSettlesEventsOfAllPartitionsByTheirTokens) {
  const auto member = client_.Join("max_in_flight: 5", kName);
  Kill(30);
  std::set<std::string> keys;
  while (keys.size() < 30) {
    const auto events = GroupClient::Take(member.get(), 5);
    ASSERT_THAT(events, SizeIs(5));
    EXPECT_EQ(client_.Statistics(kName).in_flight(), 5u);
    for (const auto& event : events) {
      EXPECT_LE(event.delivery_token().size(), 32u);
      EXPECT_TRUE(keys.insert(event.key()).second);
    }
    client_.Ack(events);
  }
  const v1::GroupStatistics statistics = client_.Statistics(kName);
  EXPECT_EQ(statistics.acked(), 30u);
  EXPECT_EQ(statistics.backlog(), 0u);
  EXPECT_EQ(statistics.members(), 1u);
}

TEST_F(PartitionsTest, AFetchTakesEventsOfAllPartitions) {
  client_.Create("", kName);
  Kill(30);
  v1::FetchExpiredRequest request;
  request.set_namespace_(kName);
  request.set_group("g");
  request.set_max_events(20);
  std::vector<v1::ExpiredEvent> events;
  for (const size_t expected : {20u, 10u, 0u}) {
    v1::FetchExpiredResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(
        server_.data()->FetchExpired(&context, request, &response).ok());
    EXPECT_EQ(static_cast<size_t>(response.events_size()), expected);
    events.insert(events.end(), response.events().begin(),
                  response.events().end());
  }
  client_.Ack(events);
  EXPECT_EQ(client_.Statistics(kName).acked(), 30u);
}

TEST_F(PartitionsTest, UnsettledEventsAreListedInPagesAndSettledByOperators) {
  client_.Create("", kName);
  Kill(30);
  v1::ListUnsettledRequest request;
  request.set_namespace_(kName);
  request.set_name("g");
  request.set_page_size(4);
  std::vector<v1::ExpiredEvent> events;
  for (bool more = true; more;) {
    v1::ListUnsettledResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(
        server_.groups()->ListUnsettled(&context, request, &response).ok());
    for (const auto& event : response.events()) events.push_back(event.event());
    request.set_page_token(response.next_page_token());
    more = !response.next_page_token().empty();
  }
  ASSERT_THAT(events, SizeIs(30));
  client_.Ack(events);
  EXPECT_EQ(client_.Statistics(kName).acked(), 30u);
  for (const char* token : {"0#1", "x#1", "1#", "-1#1", "99#1"}) {
    request.set_page_token(token);
    v1::ListUnsettledResponse response;
    grpc::ClientContext context;
    const grpc::Status status =
        server_.groups()->ListUnsettled(&context, request, &response);
    ExpectError(status, grpc::StatusCode::INVALID_ARGUMENT, v1::INVALID_FIELD,
                "page_token");
  }
}

TEST_F(PartitionsTest, AGroupMovesToTheTokenOfAMessage) {
  const auto reader = Watch();
  reader->ReadUpTo(server_.now_us(), kName);
  Kill(10);
  reader->ReadUpTo(server_.now_us(), kName);
  const std::string token = reader->token(kName);
  Kill(20);
  client_.Create("", kName);
  v1::SeekGroupRequest request;
  request.set_namespace_(kName);
  request.set_name("g");
  request.mutable_position()->set_resume_token(token);
  v1::SeekGroupResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(server_.groups()->SeekGroup(&context, request, &response).ok());
  EXPECT_EQ(response.unsettled(), 20u);
}

TEST_F(PartitionsTest, AStreamIsOneMemberAndEndsWithTheNamespace) {
  const auto member = client_.Join("", kName);
  v1::ListMembersRequest request;
  request.set_namespace_(kName);
  request.set_name("g");
  {
    v1::ListMembersResponse response;
    grpc::ClientContext context;
    ASSERT_TRUE(
        server_.groups()->ListMembers(&context, request, &response).ok());
    EXPECT_THAT(response.members(), SizeIs(1));
  }
  const auto watch = Watch();
  watch->ReadUpTo(server_.now_us(), kName);
  v1::DeleteNamespaceRequest deleted;
  deleted.set_name(kName);
  v1::DeleteNamespaceResponse response;
  grpc::ClientContext context;
  ASSERT_TRUE(
      server_.namespaces()->DeleteNamespace(&context, deleted, &response).ok());
  for (WatchReader* const reader : {member.get(), watch.get()}) {
    ExpectError(reader->Drain(), grpc::StatusCode::NOT_FOUND,
                v1::NAMESPACE_NOT_FOUND, "namespace parts was deleted");
  }
}

TEST_F(PartitionsTest, NamesOfPartitionsAreRefused) {
  WatchReader reader(server_.data(), "parts#1");
  EXPECT_EQ(reader.Drain().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  v1::ListGroupsRequest request;
  request.set_namespace_("parts#1");
  v1::ListGroupsResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(
      server_.groups()->ListGroups(&context, request, &response).error_code(),
      grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(response.groups(), IsEmpty());
}

}  // namespace
}  // namespace timecache::test

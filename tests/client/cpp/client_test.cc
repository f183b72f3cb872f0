// timecache::Client against a stand-in for the server.
#include "timecache/client.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/status.h"

namespace timecache {
namespace {

class ClientTest : public ::testing::Test {
 protected:
  FakeService service_;
  Client client_ = service_.MakeClient();
};

TEST_F(ClientTest, PutAsksForOneConditionAndTheVersionGoesBeforeTheOther) {
  ASSERT_TRUE(client_.Put("key", "1").ok());
  EXPECT_EQ(service_.Last<v1::PutRequest>().precondition_case(),
            v1::PutRequest::PRECONDITION_NOT_SET);
  const uint64_t version =
      client_.Put("key", "2", {.condition = PutCondition::kIfPresent})
          .value()
          .version;
  EXPECT_EQ(service_.Last<v1::PutRequest>().condition(),
            v1::PUT_CONDITION_IF_PRESENT);
  ASSERT_TRUE(
      client_
          .Put("key", "3",
               {.condition = PutCondition::kIfAbsent, .if_version = version})
          .ok());
  EXPECT_FALSE(service_.Last<v1::PutRequest>().has_condition());
  EXPECT_EQ(service_.Last<v1::PutRequest>().if_version(), version);
}

TEST_F(ClientTest, AnswerThatTheChannelDoesNotTakeSaysWhatToRaise) {
  v1::GetResponse large;
  large.mutable_entry()->set_value(std::string(5 << 20, 'v'));
  service_.Answer(large);
  const Client other(grpc::CreateChannel(service_.address(),
                                         grpc::InsecureChannelCredentials()));
  const absl::Status status = other.Get("large").status();
  EXPECT_TRUE(IsMessageTooLarge(status)) << status;
  EXPECT_NE(status.message().find("grpc.max_receive_message_length"),
            std::string_view::npos)
      << status;
  EXPECT_TRUE(client_.Get("large").ok());
}

TEST_F(ClientTest, ScanGoesOnBehindTheLastPageThatCame) {
  // More often than a call is retried without progress.
  std::vector<grpc::Status> ends(
      4, grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed"));
  ends.emplace_back(grpc::StatusCode::DEADLINE_EXCEEDED, "not read");
  ends.emplace_back();
  std::vector<std::string> keys;
  for (const grpc::Status& end : ends) {
    ScanScript script = {.end = end};
    keys.push_back(absl::StrCat("key", keys.size()));
    script.page.add_entries()->set_key(keys.back());
    script.page.set_position("behind " + keys.back());
    service_.AddScan(script);
  }
  std::vector<std::string> seen;
  const absl::Status status = client_.Scan({}, [&](Entry entry) {
    seen.push_back(entry.key);
    return true;
  });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, keys);
  const auto requests = service_.Requests<v1::ScanRequest>();
  ASSERT_EQ(requests.size(), keys.size());
  EXPECT_EQ(requests[0].position(), "");
  for (size_t i = 1; i < keys.size(); ++i) {
    EXPECT_EQ(requests[i].position(), "behind " + keys[i - 1]);
  }
}

TEST_F(ClientTest, ScanThatTheServerRefusesEnds) {
  ScanScript script = {.end = {grpc::StatusCode::INVALID_ARGUMENT, "position"}};
  script.page.set_position("key");
  service_.AddScan(script);
  EXPECT_TRUE(
      absl::IsInvalidArgument(client_.Scan({}, [](Entry) { return true; })));
}

TEST_F(ClientTest, ScanThatTheVisitorEndsIsOk) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client_.Put(absl::StrCat("a", i), "value").ok());
  }
  int visited = 0;
  EXPECT_TRUE(client_.Scan({}, [&](Entry) { return ++visited < 3; }).ok());
  EXPECT_EQ(visited, 3);
}

TEST_F(ClientTest, ScanUpToSaysWhetherThereIsMore) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client_.Put(absl::StrCat("a", i), "value").ok());
  }
  const auto some = client_.ScanUpTo(2);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->entries.size(), 2u);
  EXPECT_TRUE(some->more);
  const auto all = client_.ScanUpTo(3);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->entries.size(), 3u);
  EXPECT_FALSE(all->more);
}

TEST_F(ClientTest, UpdateNamesWhatTakesItsDefault) {
  NamespaceOptions options;
  options.ttl = absl::Seconds(7);
  options.max_entries = 3;
  ASSERT_TRUE(client_.CreateNamespace("n", options).ok());
  options = {};
  options.dead_letter_namespace = "";
  options.max_bytes = 5;
  ASSERT_TRUE(client_.UpdateNamespace("n", options).ok());
  EXPECT_EQ(service_.Last<v1::UpdateNamespaceRequest>().namespace_().name(),
            "n");
  EXPECT_FALSE(service_.Last<v1::UpdateNamespaceRequest>().has_update_mask());
  const auto changed =
      client_.UpdateNamespace("n", options, {"ttl", "max_bytes"});
  ASSERT_TRUE(changed.ok()) << changed.status();
  const auto mask = service_.Last<v1::UpdateNamespaceRequest>().update_mask();
  // What is set is changed, also where it is named; each name is there once.
  EXPECT_EQ(
      (std::vector<std::string>(mask.paths().begin(), mask.paths().end())),
      (std::vector<std::string>{"options.dead_letter_namespace",
                                "options.max_bytes", "options.ttl"}));
  EXPECT_EQ(changed->options.ttl, absl::Seconds(30));
  EXPECT_EQ(changed->options.max_bytes, 5u);
  EXPECT_EQ(changed->options.max_entries, 3u);
}

TEST_F(ClientTest, ListHasAllPages) {
  v1::ListNamespacesResponse page;
  page.add_namespaces()->set_name("a");
  page.set_next_page_token("token");
  service_.Answer(page);
  page.clear_next_page_token();
  service_.Answer(page);
  EXPECT_EQ(client_.ListNamespaces().value().size(), 2u);
  EXPECT_EQ(service_.Last<v1::ListNamespacesRequest>().page_token(), "token");
}

}  // namespace
}  // namespace timecache

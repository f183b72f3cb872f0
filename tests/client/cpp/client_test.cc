// timecache::Client against a stand-in for the server.
#include "timecache/client.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "timecache/status.h"
#include "timecache/virtual_clock.h"

namespace timecache {
namespace {

class ClientTest : public ::testing::Test {
 protected:
  FakeService service_;
  Client client_ = service_.MakeClient();
};

TEST_F(ClientTest, PutThenGetGivesTheEntry) {
  const auto put =
      client_.Put("key", std::string("a\0b", 3), {.ttl = absl::Seconds(7)});
  ASSERT_TRUE(put.ok()) << put.status();
  EXPECT_FALSE(put->previous);
  const auto got = client_.Get("key");
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(*got);
  EXPECT_EQ((*got)->key, "key");
  EXPECT_EQ((*got)->value, std::string("a\0b", 3));
  EXPECT_EQ((*got)->version, put->version);
  EXPECT_EQ((*got)->deadline, (*got)->put_time + absl::Seconds(7));
}

TEST_F(ClientTest, UnsetTtlIsNotSent) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  EXPECT_FALSE(service_.last_put().has_ttl());
  ASSERT_TRUE(
      client_.Put("key", "value", {.ttl = absl::Milliseconds(1500)}).ok());
  EXPECT_EQ(service_.last_put().ttl().seconds(), 1);
  EXPECT_EQ(service_.last_put().ttl().nanos(), 500'000'000);
}

TEST_F(ClientTest, ADueDateIsATimeAndLeavesTheOwnTtl) {
  const absl::Time due = absl::UnixEpoch() + absl::Microseconds(77'000'001);
  ASSERT_TRUE(client_.Put("key", "v").ok());
  EXPECT_FALSE(service_.last_put().has_expire_at());
  EXPECT_EQ(client_.Get("key").value()->own_ttl, std::nullopt);
  ASSERT_TRUE(
      client_
          .Put("key", "v",
               {.ttl = absl::Seconds(5), .expire_at = due, .allow_past = true})
          .ok());
  EXPECT_TRUE(service_.last_put().allow_past());
  Entry entry = *client_.Get("key").value();
  EXPECT_EQ(entry.deadline, due);
  EXPECT_EQ(entry.own_ttl, absl::Seconds(5));
  EXPECT_EQ(entry.create_time, absl::UnixEpoch());
  ASSERT_TRUE(client_.Touch("key", {.expire_at = due + absl::Seconds(1)}).ok());
  entry = *client_.Get("key").value();
  EXPECT_EQ(entry.deadline, due + absl::Seconds(1));
  EXPECT_EQ(entry.own_ttl, absl::Seconds(5));
}

TEST_F(ClientTest, MissIsOkAndEmpty) {
  EXPECT_EQ(client_.Get("key").value(), std::nullopt);
  EXPECT_EQ(client_.Touch("key").value(), std::nullopt);
  EXPECT_FALSE(client_.Contains("key").value());
  EXPECT_FALSE(client_.Remove("key")->removed);
}

TEST_F(ClientTest, ConditionThatFailsHasItsReason) {
  const uint64_t version = client_.Put("key", "1").value().version;
  const auto absent =
      client_.Put("key", "2", {.condition = PutCondition::kIfAbsent});
  EXPECT_TRUE(absl::IsFailedPrecondition(absent.status()));
  EXPECT_EQ(ReasonName(absent.status()), Name(v1::KEY_EXISTS));
  const auto present =
      client_.Put("other", "2", {.condition = PutCondition::kIfPresent});
  EXPECT_EQ(ReasonName(present.status()), Name(v1::KEY_NOT_FOUND));
  const auto stale = client_.Put("key", "2", {.if_version = version + 1});
  EXPECT_EQ(ReasonName(stale.status()), Name(v1::VERSION_MISMATCH));
  const auto right =
      client_.Put("key", "2", {.if_version = version, .return_previous = true});
  ASSERT_TRUE(right.ok()) << right.status();
  EXPECT_EQ(right->previous->value, "1");
}

TEST_F(ClientTest, PutAsksForOneConditionAndTheVersionGoesBeforeTheOther) {
  ASSERT_TRUE(client_.Put("key", "1").ok());
  EXPECT_EQ(service_.last_put().precondition_case(),
            v1::PutRequest::PRECONDITION_NOT_SET);
  const uint64_t version =
      client_.Put("key", "2", {.condition = PutCondition::kIfPresent})
          .value()
          .version;
  EXPECT_EQ(service_.last_put().condition(), v1::PUT_CONDITION_IF_PRESENT);
  ASSERT_TRUE(
      client_
          .Put("key", "3",
               {.condition = PutCondition::kIfAbsent, .if_version = version})
          .ok());
  EXPECT_FALSE(service_.last_put().has_condition());
  EXPECT_EQ(service_.last_put().if_version(), version);
}

TEST_F(ClientTest, RemoveReturnsWhatWasThere) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  const auto removed = client_.Remove("key", {.return_previous = true});
  ASSERT_TRUE(removed.ok());
  EXPECT_TRUE(removed->removed);
  EXPECT_EQ(removed->previous->value, "value");
  EXPECT_EQ(client_.Size()->entries, 0u);
}

TEST_F(ClientTest, InNamesAnotherNamespaceOnTheSameConnection) {
  const Client other = client_.In("other");
  const auto missing = other.Size();
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_EQ(ReasonName(missing.status()), Name(v1::NAMESPACE_NOT_FOUND));
  ASSERT_TRUE(client_.CreateNamespace("other").ok());
  ASSERT_TRUE(other.Put("key", "value").ok());
  EXPECT_EQ(other.Size()->bytes, 8u);
  EXPECT_EQ(client_.Size()->entries, 0u);
  EXPECT_EQ(other.channel(), client_.channel());
}

TEST_F(ClientTest, AnswerThatTheChannelDoesNotTakeSaysWhatToRaise) {
  ASSERT_TRUE(client_.Put("large", std::string(5 << 20, 'v')).ok());
  const Client other(grpc::CreateChannel(service_.address(),
                                         grpc::InsecureChannelCredentials()));
  const absl::Status status = other.Get("large").status();
  EXPECT_TRUE(IsMessageTooLarge(status)) << status;
  EXPECT_NE(status.message().find("grpc.max_receive_message_length"),
            std::string_view::npos)
      << status;
  EXPECT_TRUE(client_.Get("large").ok());
}

TEST_F(ClientTest, ScanGivesEveryEntryOnce) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client_.Put(absl::StrCat("a", i), "value").ok());
  }
  ASSERT_TRUE(client_.Put("b", "value").ok());
  std::map<std::string, int> seen;
  const absl::Status status =
      client_.Scan({.key_prefix = "a", .keys_only = true}, [&](Entry entry) {
        EXPECT_EQ(entry.value, "");
        ++seen[entry.key];
        return true;
      });
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(seen, (std::map<std::string, int>{
                      {"a0", 1}, {"a1", 1}, {"a2", 1}, {"a3", 1}, {"a4", 1}}));
}

TEST_F(ClientTest, ScanGoesOnBehindTheLastPageThatCame) {
  for (int i = 0; i < 12; ++i) {
    ASSERT_TRUE(client_.Put(absl::StrCat("key", 10 + i), "value").ok());
  }
  // More often than a call is retried without progress.
  std::vector<grpc::Status> cuts(
      4, grpc::Status(grpc::StatusCode::UNAVAILABLE, "Socket closed"));
  cuts.emplace_back(grpc::StatusCode::DEADLINE_EXCEEDED, "not read");
  service_.CutScans(cuts);
  std::vector<std::string> seen;
  const absl::Status status = client_.Scan({}, [&](Entry entry) {
    seen.push_back(entry.key);
    return true;
  });
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(seen.size(), 12u);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 12u);
}

TEST_F(ClientTest, ScanThatTheServerRefusesEnds) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  ASSERT_TRUE(client_.Put("other", "value").ok());
  service_.CutScans({{grpc::StatusCode::INVALID_ARGUMENT, "position"}});
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

TEST_F(ClientTest, ScanOfNothingThatExistsIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(client_.In("none").ScanUpTo(1).status()));
}

TEST_F(ClientTest, CallThatIsNotAnsweredEndsAtItsDeadline) {
  service_.Hang(true);
  const Client client =
      service_.MakeClient({.timeout = absl::Milliseconds(50)});
  EXPECT_TRUE(absl::IsDeadlineExceeded(client.Get("key").status()));
  service_.Hang(false);
}

TEST_F(ClientTest, ErrorKeepsCodeMessageAndReason) {
  service_.FailWith(MakeError(grpc::StatusCode::RESOURCE_EXHAUSTED,
                              "max_entries: 10 are in", v1::MAX_ENTRIES));
  const absl::Status status = client_.Put("key", "value").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "max_entries: 10 are in");
  EXPECT_EQ(ReasonName(status), Name(v1::MAX_ENTRIES));
}

TEST_F(ClientTest, ErrorWithoutReadableDetailsHasNoReason) {
  service_.FailWith(
      grpc::Status(grpc::StatusCode::INTERNAL, "a bug", "\xff\xff"));
  const absl::Status status = client_.Size().status();
  EXPECT_EQ(status, absl::InternalError("a bug"));
  EXPECT_EQ(ReasonName(status), std::nullopt);
  EXPECT_TRUE(FieldViolations(status).empty());
}

TEST(ClientWithoutServerTest, IsUnavailable) {
  std::string address;
  {
    FakeService service;
    address = service.address();
  }
  EXPECT_TRUE(absl::IsUnavailable(Client(address).Get("key").status()));
}

TEST_F(ClientTest, NamespacesAreAdministered) {
  NamespaceOptions options;
  options.num_buckets = 3;
  const auto made = client_.CreateNamespace("n", options);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->options.num_buckets, 3u);
  EXPECT_EQ(ReasonName(client_.CreateNamespace("n").status()),
            Name(v1::NAMESPACE_EXISTS));
  options = {};
  options.sliding = true;
  ASSERT_TRUE(client_.UpdateNamespace("n", options).ok());
  EXPECT_EQ(client_.GetNamespace("n")->options.num_buckets, 3u);
  EXPECT_TRUE(client_.GetNamespace("n")->options.sliding.value_or(false));
  // Of several pages: the fake's have one namespace each.
  const auto list = client_.ListNamespaces();
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[1].name, "n");
  ASSERT_TRUE(client_.In("n").Put("key", "value").ok());
  EXPECT_EQ(client_.RotateNamespace("n").value(), 1u);
  EXPECT_TRUE(client_.DeleteNamespace("n").ok());
  EXPECT_TRUE(absl::IsNotFound(client_.DeleteNamespace("n")));
}

TEST_F(ClientTest, StatisticsAreToldWhereTheyAreAskedFor) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  EXPECT_FALSE(client_.CreateNamespace("n")->statistics);
  EXPECT_FALSE(client_.UpdateNamespace("n", {})->statistics);
  EXPECT_FALSE(client_.GetNamespace("default")->statistics);
  EXPECT_FALSE(client_.ListNamespaces()->at(0).statistics);
  const DescribeOptions with = {.include_statistics = true};
  EXPECT_EQ(client_.GetNamespace("default", with)->statistics->entries, 1u);
  EXPECT_EQ(client_.ListNamespaces(with)->at(0).statistics->entries, 1u);
  EXPECT_TRUE(client_.ListNamespaces(with)->at(1).statistics);
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
  EXPECT_EQ(service_.last_namespace_update().namespace_().name(), "n");
  EXPECT_FALSE(service_.last_namespace_update().has_update_mask());
  const auto changed =
      client_.UpdateNamespace("n", options, {"ttl", "max_bytes"});
  ASSERT_TRUE(changed.ok()) << changed.status();
  const auto mask = service_.last_namespace_update().update_mask();
  // What is set is changed, also where it is named; each name is there once.
  EXPECT_EQ(
      (std::vector<std::string>(mask.paths().begin(), mask.paths().end())),
      (std::vector<std::string>{"options.dead_letter_namespace",
                                "options.max_bytes", "options.ttl"}));
  EXPECT_FALSE(changed->options.ttl);
  EXPECT_EQ(changed->options.max_bytes, 5u);
  EXPECT_EQ(changed->options.max_entries, 3u);
}

TEST_F(ClientTest, ServerThatTellsNoLimitsLeavesThemUnset) {
  const auto server = client_.GetServer();
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(server->version, "fake");
  EXPECT_FALSE(server->entries);
}

TEST_F(ClientTest, VirtualClockAdvances) {
  const VirtualClock clock(client_);
  EXPECT_EQ(clock.Now().value(), absl::UnixEpoch());
  EXPECT_EQ(clock.Advance(absl::Minutes(30)).value(),
            absl::UnixEpoch() + absl::Minutes(30));
  const absl::Time to = absl::FromUnixMillis(1'700'000'000'001);
  EXPECT_EQ(clock.AdvanceTo(to).value(), to);
  EXPECT_TRUE(
      absl::IsInvalidArgument(clock.AdvanceTo(absl::UnixEpoch()).status()));
  EXPECT_EQ(clock.Now().value(), to);
}

}  // namespace
}  // namespace timecache

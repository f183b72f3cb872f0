// Who calls, and what they may do: calls that are answered once.
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/dynamic_message.h"
#include "server/api/proto_time.h"
#include "tests/integration/security/access_fixture.h"
#include "tests/support/net/raw_call.h"

namespace timecache::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Data = v1::TimeCacheService::Stub;
using Groups = v1::GroupService::Stub;
using Info = v1::ServerService::Stub;
using Names = v1::NamespaceService::Stub;

TEST_F(AccessTest, WhatANamespaceIsCannotBeGuessed) {
  const std::string there = "namespace: 'default' key: 'k'";
  const std::string missing = "namespace: 'missing' key: 'k'";
  const ErrorParts first = PartsOf(As("nobody", &Data::Get, there).status);
  const ErrorParts second = PartsOf(As("nobody", &Data::Get, missing).status);
  EXPECT_EQ(first.code, second.code);
  EXPECT_EQ(first.reason, second.reason);
  // Nor by mistakes in the request.
  ExpectDenied(
      As("nobody", &Data::Put, there + " ttl { seconds: 1 nanos: -1 }").status,
      "");
  EXPECT_EQ(As("admin", &Data::Get, missing).status.error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(AccessTest, ABatchGoesOnWithoutWhatItsCallerMayNotDo) {
  const std::string batch =
      "namespace: 'default' operations { get { key: 'a' } } "
      "operations { put { key: 'a' value: '1' } } "
      "operations { put { key: 'b' return_previous: true } } "
      "operations { contains { key: 'a' } } operations { touch { key: 'a' } }";
  const auto codes = [](const v1::ExecuteResponse& response) {
    std::vector<int> all;
    for (const auto& result : response.results()) {
      all.push_back(result.error().code());
    }
    return all;
  };
  const int denied = grpc::StatusCode::PERMISSION_DENIED;
  const auto read = Must(As("reader", &Data::Execute, batch));
  EXPECT_THAT(codes(read), ElementsAre(0, denied, denied, 0, denied));
  EXPECT_FALSE(read.results(3).contains().contains());
  const auto written = Must(As("writer", &Data::Execute, batch));
  EXPECT_THAT(codes(written), ElementsAre(denied, 0, denied, denied, 0));
  EXPECT_TRUE(written.results(4).touch().touched());
  ExpectError(grpc::Status(grpc::StatusCode::PERMISSION_DENIED,
                           written.results(0).error().message(),
                           written.results(0).error().SerializeAsString()),
              grpc::StatusCode::PERMISSION_DENIED, v1::ACCESS_DENIED, "read");
  EXPECT_THAT(codes(Must(As("admin", &Data::Execute, batch))),
              ElementsAre(0, 0, 0, 0, 0));
  // Without any right there, nothing is tried.
  ExpectDenied(As("nobody", &Data::Execute, batch).status, "");
  ExpectDenied(As("writer", &Data::Execute,
                  "namespace: 'missing' operations { put { key: 'a' } }")
                   .status,
               "", "missing");
}

TEST_F(AccessTest, AnAtomicBatchWithWhatItsCallerMayNotDoChangesNothing) {
  const std::string batch =
      "namespace: 'default' atomic: true "
      "operations { put { key: 'a' value: '1' } } operations { get { key: 'b' "
      "} }";
  const auto written = Must(As("writer", &Data::Execute, batch));
  EXPECT_EQ(written.results(0).error().code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(written.results(1).error().code(),
            grpc::StatusCode::PERMISSION_DENIED);
  const auto done = Must(As("admin", &Data::Execute, batch));
  EXPECT_TRUE(done.results(0).has_put());
  ExpectDenied(As("nobody", &Data::Execute, batch).status, "");
}

TEST_F(AccessTest, DeniedAndMalformedOperationsKeepTheirPlaces) {
  const auto response = Must(
      As("reader", &Data::Execute,
         "namespace: 'default' operations { } operations { put { key: 'a' } } "
         "operations { get { key: 'a' } } operations { } "
         "operations { put { key: 'a' } } operations { }"));
  std::vector<int> codes;
  for (const auto& result : response.results()) {
    codes.push_back(result.error().code());
  }
  const int invalid = grpc::StatusCode::INVALID_ARGUMENT;
  const int denied = grpc::StatusCode::PERMISSION_DENIED;
  EXPECT_THAT(codes, ElementsAre(invalid, denied, 0, invalid, denied, invalid));
}

TEST_F(AccessTest, AMalformedBatchOfOneWhoIsNotKnownSaysOnlyThat) {
  ExpectUnknown(As("", &Data::Execute, "").status, v1::NO_CREDENTIALS);
  ExpectInvalid(As("nobody", &Data::Execute, "").status, "operations", "4096");
}

// Who owns is for all who may do anything there: the server has none to name.
TEST_F(AccessTest, AnyRightOnANamespaceIsEnoughToAskForItsOwners) {
  for (const char* caller : {"reader", "writer", "admin"}) {
    ExpectError(As(caller, &Names::GetOwners, "name: 'default'").status,
                grpc::StatusCode::FAILED_PRECONDITION, v1::NO_CLUSTER,
                "cluster");
  }
  ExpectDenied(As("nobody", &Names::GetOwners, "name: 'default'").status,
               "read");
}

TEST_F(AccessTest, AdministrationIsForAdministrators) {
  ExpectDenied(As("reader", &Names::CreateNamespace, "name: 'new'").status,
               "admin", "new");
  ExpectDenied(As("reader", &Names::DeleteNamespace, "name: 'default'").status,
               "admin");
  ExpectDenied(As("reader", &Names::UpdateNamespace,
                  "namespace { name: 'default' options { sliding: true } }")
                   .status,
               "admin");
  Must(As("reader", &Names::GetNamespace, "name: 'default'"));
  ExpectDenied(As("writer", &Names::GetNamespace, "name: 'default'").status,
               "read");
  const std::string group = "namespace: 'default' name: 'g'";
  ExpectDenied(As("worker", &Groups::CreateGroup, group).status, "admin");
  Must(As("admin", &Groups::CreateGroup, group));
  ExpectDenied(
      As("worker", &Groups::UpdateGroup, absl::StrCat("group { ", group, " }"))
          .status,
      "admin");
  Must(As("watcher", &Groups::GetGroup, group));
  ExpectDenied(As("reader", &Groups::GetGroup, group).status, "watch");
  Must(As("watcher", &Groups::ListGroups, "namespace: 'default'"));
  ExpectDenied(As("reader", &Groups::ListGroups, "namespace: 'default'").status,
               "watch");
  ExpectDenied(
      As("watcher", &Data::SettleExpired, "namespace: 'default' group: 'g'")
          .status,
      "settle");
}

TEST_F(AccessTest, ListsShowWhatTheCallerHasAnyRightIn) {
  Must(As("admin", &Names::CreateNamespace, "name: 'other'"));
  const auto names = [this](const std::string& who) {
    std::vector<std::string> all;
    const auto listed = Must(As(who, &Names::ListNamespaces, ""));
    for (const auto& each : listed.namespaces()) all.push_back(each.name());
    return all;
  };
  EXPECT_THAT(names("admin"), ElementsAre("default", "other"));
  EXPECT_THAT(names("watcher"), ElementsAre("default"));
  // A page says nothing of what its reader may not see, behind it either.
  const auto page = Must(As("watcher", &Names::ListNamespaces, "page_size: 1"));
  EXPECT_THAT(page.namespaces(), ::testing::SizeIs(1));
  EXPECT_EQ(page.next_page_token(), "");
  EXPECT_THAT(names("nobody"), IsEmpty());
  ExpectUnknown(As("", &Names::ListNamespaces, "").status, v1::NO_CREDENTIALS);
}

// What all namespaces hold, and where, is for who may read all of them.
TEST_F(AccessTest, TheServersLimitsAreForWhoMayReadEverything) {
  SetRules("", Rule("watcher", "watch", "*") + Rule("worker", "read", "de*"));
  const v1::GetServerResponse all = Must(As("admin", &Info::GetServer, ""));
  EXPECT_EQ(all.namespaces().used(), 1u);
  EXPECT_TRUE(all.has_entries());
  EXPECT_TRUE(all.has_bytes());
  EXPECT_TRUE(all.has_watchers());
  EXPECT_TRUE(all.has_memory_bytes());
  EXPECT_TRUE(all.has_connections());
  EXPECT_TRUE(all.has_memory_shares());
  EXPECT_EQ(all.journal().directory(), "/a/journal");
  for (const char* who : {"reader", "writer", "watcher", "worker"}) {
    SCOPED_TRACE(who);
    const v1::GetServerResponse some = Must(As(who, &Info::GetServer, ""));
    v1::GetServerResponse expected;
    expected.set_version(all.version());
    *expected.mutable_start_time() = all.start_time();
    // The clock stands still.
    *expected.mutable_now() = all.now();
    EXPECT_EQ(some.SerializeAsString(), expected.SerializeAsString())
        << some.ShortDebugString();
  }
  EXPECT_EQ(As("nobody", &Info::GetServer, "").status.error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  SetRules("", Rule("worker", "read", "*"));
  EXPECT_TRUE(Must(As("worker", &Info::GetServer, "")).has_entries());
}

// A backup has what is in every namespace.
TEST_F(AccessTest, ABackupIsForWhoMayAdministerTheWholeServer) {
  SetRules("", Rule("worker", "admin", "de*") +
                   Rule("reader", "read, write, watch, settle", "*"));
  const auto back_up = [this](const std::string& who) {
    grpc::ClientContext context;
    SignAs(who, &context);
    const auto reader =
        server_->about()->BackupJournal(&context, v1::BackupJournalRequest());
    v1::BackupJournalResponse response;
    while (reader->Read(&response)) {
    }
    return reader->Finish();
  };
  ExpectDenied(back_up("worker"), "admin", "*");
  ExpectDenied(back_up("reader"), "admin", "*");
  ExpectUnknown(back_up(""), v1::NO_CREDENTIALS);
  // It has no journal.
  EXPECT_EQ(back_up("admin").error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

// It is about all namespaces. This server is in none.
TEST_F(AccessTest, AClusterNeedsRightsOnTheWholeServer) {
  SetRules("",
           Rule("worker", "read, admin", "de*") + Rule("reader", "read", "*"));
  ExpectDenied(As("worker", &Info::GetCluster, "").status, "read", "*");
  ExpectDenied(As("worker", &Info::HandOver, "").status, "admin", "*");
  ExpectDenied(As("reader", &Info::HandOver, "").status, "admin", "*");
  for (const grpc::Status& status : {As("reader", &Info::GetCluster, "").status,
                                     As("admin", &Info::HandOver, "").status}) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  }
}

// What cannot be put by hand cannot be had put by a namespace.
TEST_F(AccessTest, DeadLettersNeedTheRightToWriteThem) {
  SetRules("", Rule("worker", "admin", "mine-*"));
  ExpectDenied(As("worker", &Names::CreateNamespace,
                  "name: 'mine-1' options { dead_letter_namespace: 'default' }")
                   .status,
               "write");
  Must(As("worker", &Names::CreateNamespace, "name: 'mine-1'"));
  ExpectDenied(As("worker", &Names::UpdateNamespace,
                  "namespace { name: 'mine-1' "
                  "options { dead_letter_namespace: 'default' } }")
                   .status,
               "write");
  // Nor by a mask.
  ExpectDenied(As("worker", &Names::UpdateNamespace,
                  "namespace { name: 'mine-1' "
                  "options { dead_letter_namespace: 'default' } } "
                  "update_mask { paths: '*' }")
                   .status,
               "write");
  // What it does not name is not asked for either.
  Must(As("worker", &Names::UpdateNamespace,
          "namespace { name: 'mine-1' "
          "options { dead_letter_namespace: 'default' } } "
          "update_mask { paths: 'options.ttl' }"));
  EXPECT_EQ(server_->registry()
                .Find("mine-1")
                .value()
                ->options()
                .dead_letter_namespace,
            "");
  Must(As("worker", &Names::UpdateNamespace,
          "namespace { name: 'mine-1' "
          "options { dead_letter_namespace: '' } }"));
  SetRules("", Rule("worker", "admin", "mine-*") + Rule("worker", "write"));
  Must(As("worker", &Names::UpdateNamespace,
          "namespace { name: 'mine-1' "
          "options { dead_letter_namespace: 'default' } }"));
}

// And of who made the group, at each letter: what was allowed when the
// namespace was named may have been withdrawn, and the name be another
// namespace's.
TEST_F(AccessTest, DeadLettersStayWhenTheGroupsMakerMayNotWriteThemAnyMore) {
  const std::string mine =
      Rule("worker", "write, watch, settle, admin", "mine-*");
  SetRules("", mine + Rule("worker", "write"));
  Must(As("worker", &Names::CreateNamespace,
          "name: 'mine-1' options { dead_letter_namespace: 'default' }"));
  const v1::Group made =
      Must(As("worker", &Groups::CreateGroup,
              "namespace: 'mine-1' name: 'g' options { max_attempts: 1 "
              "ack_timeout { seconds: 1 } }"))
          .group();
  EXPECT_EQ(made.created_by(), "worker");
  Must(As("worker", &Data::Put,
          "namespace: 'mine-1' key: 'k' value: 'v' ttl { seconds: 1 }"));
  const auto pass_two_seconds = [&] {
    timecache::testing::v1::AdvanceRequest request;
    server::SetTime(server_->now_us() + 2 * server::kMicrosPerSecond,
                    request.mutable_to());
    Must(CallAs("admin", server_->clock(),
                &timecache::testing::v1::VirtualClockService::Stub::Advance,
                request));
  };
  grpc::ClientContext context;
  SignAs("worker", &context);
  const auto member = data()->ConsumeExpired(
      &context,
      Proto<v1::ConsumeExpiredRequest>("namespaces: 'mine-1' group: 'g'"));
  v1::ConsumeExpiredResponse message;
  ASSERT_TRUE(member->Read(&message));
  pass_two_seconds();
  while (message.events().empty()) ASSERT_TRUE(member->Read(&message));
  SetRules("", mine);
  pass_two_seconds();

  const auto group = [&] {
    return Must(As("admin", &Groups::ListGroups,
                   "namespace: 'mine-1' include_statistics: true"))
        .groups(0)
        .statistics();
  };
  const auto letters = [&] {
    return Must(As("admin", &Data::Size, "namespace: 'default'")).entries();
  };
  EXPECT_EQ(group().dead_letters_denied(), 1u);
  EXPECT_EQ(group().backlog(), 1u);
  EXPECT_EQ(group().lost(), 0u);
  EXPECT_EQ(letters(), 0u);
  // With the right it goes.
  SetRules("", mine + Rule("worker", "write"));
  pass_two_seconds();
  EXPECT_EQ(group().dead_lettered(), 1u);
  EXPECT_EQ(letters(), 1u);
  context.TryCancel();
}

// Makes it about the namespace "default".
void NameDefault(google::protobuf::Message* message) {
  const auto* type = message->GetDescriptor();
  const auto* reflection = message->GetReflection();
  if (const auto* field = type->FindFieldByName("namespaces")) {
    reflection->AddString(message, field, "default");
  }
  for (const char* name : {"namespace", "group", "name"}) {
    const auto* field = type->FindFieldByName(name);
    if (field == nullptr) continue;
    if (field->message_type() != nullptr) {
      NameDefault(reflection->MutableMessage(message, field));
    } else {
      reflection->SetString(message, field, "default");
    }
    break;
  }
}

// A request of this type that is about the namespace "default".
std::string RequestAboutDefault(const google::protobuf::Descriptor* type) {
  google::protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<google::protobuf::Message> message(
      factory.GetPrototype(type)->New());
  NameDefault(message.get());
  const auto* reflection = message->GetReflection();
  if (const auto* field = type->FindFieldByName("operations")) {
    reflection->AddMessage(message.get(), field);
  }
  // Without one the request is no good, whoever sends it.
  if (const auto* field = type->FindFieldByName("lead_time")) {
    auto* const lead_time = reflection->MutableMessage(message.get(), field);
    lead_time->GetReflection()->SetInt64(
        lead_time, field->message_type()->FindFieldByName("seconds"), 5);
  }
  return message->SerializeAsString();
}

// Who adds a method and forgets to ask is found here.
TEST_F(AccessTest, NoMethodIsForEverybody) {
  const auto& pool = *google::protobuf::DescriptorPool::generated_pool();
  size_t methods = 0;
  for (const server::Method& method : server::kMethods) {
    const auto* service = pool.FindServiceByName(std::string(method.service));
    ASSERT_NE(service, nullptr) << method.service;
    const auto* descriptor =
        service->FindMethodByName(std::string(method.name));
    ASSERT_NE(descriptor, nullptr) << method.name;
    const std::string path =
        absl::StrCat("/", method.service, "/", method.name);
    const std::string request = RequestAboutDefault(descriptor->input_type());
    const auto call = [&](const std::string& name) {
      return RawCall(server_->channel(), path, request,
                     name.empty() ? "" : "Bearer " + TokenOf(name));
    };
    EXPECT_EQ(call("").error_code(), grpc::StatusCode::UNAUTHENTICATED) << path;
    EXPECT_EQ(call("unheard-of").error_code(),
              grpc::StatusCode::UNAUTHENTICATED)
        << path;
    // Answers with what nobody may see: nothing.
    const bool lists =
        method.name == "ListNamespaces" || method.name == "WhoAmI";
    EXPECT_EQ(
        call("nobody").error_code(),
        lists ? grpc::StatusCode::OK : grpc::StatusCode::PERMISSION_DENIED)
        << path;
    ++methods;
  }
  EXPECT_EQ(methods, server::kMethods.size());
}

}  // namespace
}  // namespace timecache::test

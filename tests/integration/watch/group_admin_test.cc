// The consumer groups of a namespace: made, described, changed and deleted.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using Groups = v1::GroupService::Stub;
using Names = v1::NamespaceService::Stub;
using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GroupAdminTest : public ::testing::Test {
 protected:
  template <typename Request, typename Response>
  Reply<Response> Do(grpc::Status (Groups::*method)(grpc::ClientContext*,
                                                    const Request&, Response*),
                     const std::string& request) {
    return Call(server_.groups(), method, Proto<Request>(request));
  }
  Reply<v1::CreateGroupResponse> Create(const std::string& name,
                                        const std::string& options = "") {
    return Do(&Groups::CreateGroup,
              absl::StrCat("namespace: 'default' name: '", name, "' options { ",
                           options, " }"));
  }
  Reply<v1::UpdateGroupResponse> Update(
      const std::string& options, const std::vector<std::string>& mask = {}) {
    return Call(server_.groups(), &Groups::UpdateGroup,
                UpdateOf<v1::UpdateGroupRequest>(
                    absl::StrCat("group { namespace: 'default' name: 'g' ",
                                 "options { ", options, " } }"),
                    mask));
  }
  // The options after an update that must succeed.
  std::string Updated(const std::string& options,
                      const std::vector<std::string>& mask) {
    const v1::Group group = Must(Update(options, mask)).group();
    EXPECT_EQ(group.options().SerializeAsString(),
              group_.Describe().options().SerializeAsString());
    return group.options().ShortDebugString();
  }
  std::vector<std::string> List(const std::string& name = "default") {
    std::vector<std::string> names;
    const auto list =
        Must(Do(&Groups::ListGroups, absl::StrCat("namespace: '", name, "'")));
    for (const v1::Group& group : list.groups()) {
      EXPECT_EQ(group.namespace_(), name);
      names.push_back(group.name());
    }
    return names;
  }

  TestServer server_;
  GroupClient group_{&server_};
};

TEST_F(GroupAdminTest, CreateFillsInTheDefaults) {
  const v1::Group made = Must(Create("g")).group();
  EXPECT_EQ(made.name(), "g");
  EXPECT_EQ(made.namespace_(), "default");
  EXPECT_EQ(made.options().SerializeAsString(),
            Proto<v1::GroupOptions>("ack_timeout { seconds: 30 } max_attempts: "
                                    "5 max_backlog_bytes: 268435456 "
                                    "unused_ttl {}")
                .SerializeAsString());
  EXPECT_FALSE(made.has_statistics());
  const v1::GroupStatistics statistics = group_.Statistics();
  v1::GroupStatistics unused;
  *unused.mutable_unused_since() = statistics.unused_since();
  EXPECT_TRUE(unused.has_unused_since());
  EXPECT_EQ(statistics.SerializeAsString(), unused.SerializeAsString());
  EXPECT_EQ(made.created_by(), "anonymous");
  EXPECT_THAT(server_.observed().back(),
              HasSubstr("group_created default group: g ack_timeout"));
}

TEST_F(GroupAdminTest, AGroupOfAFirstMemberHasTheDefaultsAndGoesWhenUnused) {
  auto member = group_.Join();
  v1::Group found = group_.Describe();
  EXPECT_EQ(found.options().unused_ttl().seconds(), 604'800);
  EXPECT_EQ(found.created_by(), "anonymous");
  found.mutable_options()->clear_unused_ttl();
  v1::GroupOptions made = Must(Create("made")).group().options();
  made.clear_unused_ttl();
  EXPECT_EQ(found.options().SerializeAsString(), made.SerializeAsString());
  EXPECT_EQ(found.statistics().members(), 1u);
  EXPECT_FALSE(found.statistics().has_unused_since());
}

TEST_F(GroupAdminTest, CreateTakesEveryOptionAtItsExtremes) {
  EXPECT_TRUE(Create("least",
                     "ack_timeout { nanos: 10000000 } max_attempts: 1 "
                     "max_backlog_bytes: 1048576")
                  .status.ok());
  const auto most =
      Must(Create(std::string(63, 'm'),
                  "ack_timeout { seconds: 604800 } max_attempts: 1000000 "
                  "max_backlog_bytes: 68719476736"));
  EXPECT_EQ(most.group().options().max_backlog_bytes(), uint64_t{64} << 30);
  EXPECT_EQ(most.group().options().max_attempts(), 1'000'000u);
  EXPECT_EQ(most.group().options().ack_timeout().seconds(), 604'800);
}

TEST_F(GroupAdminTest, EveryOptionOutOfItsRangeIsRefusedByName) {
  const struct {
    const char* option;
    const char* field;
    const char* limit;
  } kCases[] = {
      {"ack_timeout { nanos: 9999000 }", "ack_timeout", "10ms"},
      {"ack_timeout {}", "ack_timeout", "10ms"},
      {"ack_timeout { seconds: -1 }", "ack_timeout", "10ms"},
      {"ack_timeout { seconds: 604801 }", "ack_timeout", "168h"},
      {"ack_timeout { seconds: 1 nanos: -1 }", "ack_timeout",
       "google.protobuf.Duration"},
      {"max_attempts: 0", "max_attempts", "1"},
      {"max_attempts: 1000001", "max_attempts", "1000000"},
      {"max_attempts: 4294967295", "max_attempts", "at most"},
      {"max_backlog_bytes: 1048575", "max_backlog_bytes", "1048576"},
      {"max_backlog_bytes: 68719476737", "max_backlog_bytes", "68719476736"},
      {"max_backlog_bytes: 18446744073709551615", "max_backlog_bytes",
       "at most"},
      {"unused_ttl { nanos: 999999000 }", "unused_ttl", "1s"},
      {"unused_ttl { seconds: -1 }", "unused_ttl", "1s"},
      {"unused_ttl { seconds: 315360001 }", "unused_ttl", "87600h"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.option);
    ExpectInvalid(Create("g", c.option).status,
                  absl::StrCat("options.", c.field), c.limit);
    EXPECT_THAT(List(), IsEmpty());
  }
  const std::string before =
      Must(Create("g")).group().options().SerializeAsString();
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.option);
    const std::string field = absl::StrCat("group.options.", c.field);
    ExpectInvalid(Update(c.option).status, field, c.limit);
    ExpectInvalid(Update(c.option, {"*"}).status, field, c.limit);
  }
  EXPECT_EQ(group_.Describe().options().SerializeAsString(), before);
}

TEST_F(GroupAdminTest, ANameThatNoGroupCanHaveIsRefused) {
  for (const std::string& name : {std::string(), std::string("G"),
                                  std::string("g-"), std::string(64, 'g')}) {
    SCOPED_TRACE(name);
    ExpectInvalid(Create(name).status, "name", name.empty() ? "" : "63");
    const std::string group =
        absl::StrCat("namespace: 'default' name: '", name, "'");
    ExpectInvalid(Do(&Groups::GetGroup, group).status, "name", "63");
    ExpectInvalid(Do(&Groups::DeleteGroup, group).status, "name", "63");
    ExpectInvalid(
        Do(&Groups::UpdateGroup, absl::StrCat("group { ", group, " }")).status,
        "group.name", "63");
  }
  EXPECT_THAT(List(), IsEmpty());
}

TEST_F(GroupAdminTest, AGroupThatExistsIsNotMadeAgain) {
  Must(Create("g", "max_attempts: 7"));
  ExpectError(Create("g").status, StatusCode::ALREADY_EXISTS, v1::GROUP_EXISTS,
              "g");
  EXPECT_EQ(group_.Describe().options().max_attempts(), 7u);
}

TEST_F(GroupAdminTest, OneGroupTooManyIsRefusedHoweverItIsMade) {
  for (int i = 0; i < 64; ++i) Must(Create(absl::StrCat("g", i)));
  ExpectError(Create("one-more").status, StatusCode::RESOURCE_EXHAUSTED,
              v1::MAX_GROUPS, "64");
  ExpectError(group_.Start()->Drain(), StatusCode::RESOURCE_EXHAUSTED,
              v1::MAX_GROUPS, "64");
  Must(Do(&Groups::DeleteGroup, "namespace: 'default' name: 'g7'"));
  group_.Join();
  EXPECT_EQ(List().size(), 64u);
}

TEST_F(GroupAdminTest, ListIsOrderedByNameAndOfOneNamespace) {
  server_.Create("other");
  for (const char* name : {"m", "z", "a", "m.1", "0"}) Must(Create(name));
  EXPECT_THAT(List(), ElementsAre("0", "a", "m", "m.1", "z"));
  EXPECT_THAT(List("other"), IsEmpty());
}

TEST_F(GroupAdminTest, ListsInPages) {
  for (const char* name : {"a", "b", "c", "d"}) Must(Create(name));
  const auto page = [this](const std::string& request) {
    std::vector<std::string> names;
    const auto list = Must(Do(&Groups::ListGroups,
                              absl::StrCat("namespace: 'default' ", request)));
    for (const auto& each : list.groups()) names.push_back(each.name());
    return std::pair(names, list.next_page_token());
  };
  const auto [first, to_second] = page("page_size: 2");
  EXPECT_THAT(first, ElementsAre("a", "b"));
  ASSERT_FALSE(to_second.empty());
  // What comes and goes in between neither repeats nor hides the others.
  Must(Create("aa"));
  Must(Do(&Groups::DeleteGroup, "namespace: 'default' name: 'b'"));
  const auto [second, end] =
      page(absl::StrCat("page_size: 2 page_token: '", to_second, "'"));
  EXPECT_THAT(second, ElementsAre("c", "d"));
  EXPECT_EQ(end, "");
  for (const char* all : {"", "page_size: 4", "page_size: 2147483647"}) {
    EXPECT_THAT(page(all).first, ElementsAre("a", "aa", "c", "d")) << all;
    EXPECT_EQ(page(all).second, "") << all;
  }
  const auto list = [this](const std::string& request) {
    return Do(&Groups::ListGroups,
              absl::StrCat("namespace: 'default' ", request))
        .status;
  };
  ExpectInvalid(list("page_size: -1"), "page_size", "negative");
  ExpectInvalid(list("page_token: 'No_Name'"), "page_token", "next_page_token");
}

TEST_F(GroupAdminTest, AsManyAsANamespaceMayHaveAreOnePage) {
  for (int i = 0; i < 64; ++i) Must(Create(absl::StrCat("g", i)));
  const auto all = Must(Do(&Groups::ListGroups, "namespace: 'default'"));
  EXPECT_EQ(all.groups_size(), 64);
  EXPECT_EQ(all.next_page_token(), "");
  const auto most =
      Must(Do(&Groups::ListGroups, "namespace: 'default' page_size: 63"));
  EXPECT_EQ(most.groups_size(), 63);
  EXPECT_EQ(most.next_page_token(), "g8");
}

TEST_F(GroupAdminTest, GetDescribesOneGroup) {
  Must(Create("other"));
  const v1::Group made = Must(Create("g", "max_attempts: 7")).group();
  const v1::Group found =
      Must(Do(&Groups::GetGroup, "namespace: 'default' name: 'g'")).group();
  EXPECT_EQ(found.SerializeAsString(), made.SerializeAsString());
  EXPECT_EQ(found.options().max_attempts(), 7u);
  ExpectError(
      Do(&Groups::GetGroup, "namespace: 'default' name: 'absent'").status,
      StatusCode::NOT_FOUND, v1::GROUP_NOT_FOUND, "absent");
}

TEST_F(GroupAdminTest, StatisticsComeWhereTheyAreAskedFor) {
  const std::string group = "namespace: 'default' name: 'g' ";
  EXPECT_FALSE(Must(Create("g")).group().has_statistics());
  EXPECT_FALSE(Must(Update("max_attempts: 2")).group().has_statistics());
  const auto member = group_.Join();
  const auto get = [&](const std::string& more) {
    return Must(Do(&Groups::GetGroup, group + more)).group();
  };
  EXPECT_FALSE(get("").has_statistics());
  EXPECT_EQ(get("include_statistics: true").statistics().members(), 1u);
  const auto list = [this](const std::string& more) {
    const auto listed = Must(
        Do(&Groups::ListGroups, absl::StrCat("namespace: 'default' ", more)));
    EXPECT_EQ(listed.groups_size(), 1);
    return listed.groups(0);
  };
  EXPECT_FALSE(list("").has_statistics());
  EXPECT_EQ(list("include_statistics: true").statistics().members(), 1u);
}

TEST_F(GroupAdminTest, AMaskChangesWhatItNamesAndNothingElse) {
  Must(Create("g",
              "ack_timeout { seconds: 5 } max_attempts: 7 "
              "max_backlog_bytes: 1048576 unused_ttl { seconds: 60 }"));
  EXPECT_EQ(Updated("max_attempts: 9 max_backlog_bytes: 2097152",
                    {"options.max_attempts"}),
            "ack_timeout { seconds: 5 } max_attempts: 9 "
            "max_backlog_bytes: 1048576 unused_ttl { seconds: 60 }");
  // What it names and what is not set takes its default.
  EXPECT_EQ(Updated("", {"options.ack_timeout"}),
            "ack_timeout { seconds: 30 } max_attempts: 9 "
            "max_backlog_bytes: 1048576 unused_ttl { seconds: 60 }");
  EXPECT_THAT(server_.observed().back(),
              HasSubstr("group_updated default group: g ack_timeout { seconds: "
                        "30 }"));
  EXPECT_EQ(Updated("max_attempts: 3",
                    {"options.unused_ttl", "options.max_attempts"}),
            "ack_timeout { seconds: 30 } max_attempts: 3 "
            "max_backlog_bytes: 1048576 unused_ttl { }");
  // What it does not name is not even looked at.
  EXPECT_EQ(Updated("max_attempts: 0 ack_timeout { seconds: 8 }",
                    {"options.ack_timeout"}),
            "ack_timeout { seconds: 8 } max_attempts: 3 "
            "max_backlog_bytes: 1048576 unused_ttl { }");
}

TEST_F(GroupAdminTest, AMaskOfAllSetsTheRestToTheirDefaults) {
  Must(Create("g"));
  for (const char* all : {"options", "*"}) {
    SCOPED_TRACE(all);
    Must(
        Update("ack_timeout { seconds: 5 } max_attempts: 7 "
               "max_backlog_bytes: 1048576 unused_ttl { seconds: 60 }"));
    EXPECT_EQ(Updated("max_attempts: 9", {all}),
              "ack_timeout { seconds: 30 } max_attempts: 9 "
              "max_backlog_bytes: 268435456 unused_ttl { }");
  }
}

TEST_F(GroupAdminTest, AMaskThatNamesAnythingElseIsRefused) {
  Must(Create("g", "max_attempts: 7"));
  for (const char* path :
       {"", "max_attempts", "options.", "options.nonsense", "options.*",
        "options.ack_timeout.seconds", "Options", "name", "namespace",
        "statistics", "statistics.members", "created_by"}) {
    SCOPED_TRACE(path);
    const auto status =
        Update("max_attempts: 9", {"options.max_attempts", path}).status;
    ExpectInvalid(status, "update_mask", "options.ack_timeout");
    EXPECT_THAT(PartsOf(status).message,
                HasSubstr(absl::StrCat("\"", path, "\"")));
    EXPECT_EQ(group_.Describe().options().max_attempts(), 7u);
  }
}

TEST_F(GroupAdminTest, UpdateChangesWhatIsSetAndNothingElse) {
  Must(Create("g", "max_attempts: 7 max_backlog_bytes: 1048576"));
  const v1::Group group = Must(Update("ack_timeout { seconds: 5 }")).group();
  EXPECT_EQ(group.name(), "g");
  EXPECT_EQ(group.options().SerializeAsString(),
            Proto<v1::GroupOptions>("ack_timeout { seconds: 5 } max_attempts: "
                                    "7 max_backlog_bytes: 1048576 "
                                    "unused_ttl {}")
                .SerializeAsString());
  EXPECT_THAT(server_.observed().back(),
              HasSubstr("group_updated default group: g ack_timeout"));
}

TEST_F(GroupAdminTest, ANewTimeOutIsOfWhatIsGivenOutFromNowOn) {
  const auto member = group_.Join();
  const auto kill = [this](const std::string& key) {
    server_.Put(key, "", server::kMicrosPerSecond);
    server_.AdvanceTo(DeathUs(server_.now_us(), server::kMicrosPerSecond));
  };
  kill("a");
  const v1::ExpiredEvent a = group_.TakeOne(member.get());
  EXPECT_EQ(a.key(), "a");
  Must(Update("ack_timeout { seconds: 5 }"));
  kill("b");
  EXPECT_EQ(group_.TakeOne(member.get()).key(), "b");
  server_.AdvanceBy(5 * server::kMicrosPerSecond);
  EXPECT_EQ(group_.Statistics().timed_out(), 1u);
  group_.Ack(a);
  const auto other = group_.Start();
  EXPECT_EQ(group_.TakeOne(other.get()).key(), "b");
}

TEST_F(GroupAdminTest, DeleteForgetsTheGroup) {
  Must(Create("g"));
  Must(Do(&Groups::DeleteGroup, "namespace: 'default' name: 'g'"));
  EXPECT_THAT(server_.observed().back(), "group_deleted default group: g");
  EXPECT_THAT(List(), IsEmpty());
  ExpectError(Do(&Groups::DeleteGroup, "namespace: 'default' name: 'g'").status,
              StatusCode::NOT_FOUND, v1::GROUP_NOT_FOUND, "g");
  ExpectError(Update("max_attempts: 2").status, StatusCode::NOT_FOUND,
              v1::GROUP_NOT_FOUND, "g");
}

TEST_F(GroupAdminTest, EveryCallNeedsItsNamespace) {
  const auto check = [](const grpc::Status& none, const grpc::Status& unset) {
    ExpectError(none, StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND, "none");
    ExpectInvalid(unset, "namespace", "must be set");
  };
  check(Do(&Groups::CreateGroup, "namespace: 'none' name: 'g'").status,
        Do(&Groups::CreateGroup, "name: 'g'").status);
  check(Do(&Groups::ListGroups, "namespace: 'none'").status,
        Do(&Groups::ListGroups, "").status);
  check(Do(&Groups::GetGroup, "namespace: 'none' name: 'g'").status,
        Do(&Groups::GetGroup, "name: 'g'").status);
  check(Do(&Groups::DeleteGroup, "namespace: 'none' name: 'g'").status,
        Do(&Groups::DeleteGroup, "name: 'g'").status);
  ExpectError(
      Do(&Groups::UpdateGroup, "group { namespace: 'none' name: 'g' }").status,
      StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND, "none");
  for (const char* unset : {"group { name: 'g' }", ""}) {
    ExpectInvalid(Do(&Groups::UpdateGroup, unset).status, "group.namespace",
                  "must be set");
  }
}

TEST_F(GroupAdminTest, FromEarliestBeginsWithWhatIsRetained) {
  server_.Put("a", "1");
  server_.AdvanceTo(DeathUs(kStartUs));
  Must(Do(&Groups::CreateGroup,
          "namespace: 'default' name: 'g' from_earliest: true"));
  EXPECT_EQ(group_.Statistics().backlog(), 1u);
  EXPECT_EQ(group_.TakeOne(group_.Start().get()).key(), "a");
}

TEST_F(GroupAdminTest, StatisticsSayHowFarTheGroupIsBehind) {
  Must(Create("g"));
  server_.Fill(3, "k", "value");
  const int64_t death_us = DeathUs(kStartUs);
  server_.AdvanceTo(death_us);
  v1::GroupStatistics statistics = group_.Statistics();
  EXPECT_EQ(statistics.backlog(), 3u);
  EXPECT_GT(statistics.backlog_bytes(), 0u);
  EXPECT_EQ(statistics.in_flight(), 0u);
  EXPECT_EQ(ToUs(statistics.oldest_unsettled()), death_us);
  const auto member = group_.Start("max_in_flight: 2");
  const auto events = group_.Take(member.get(), 2);
  statistics = group_.Statistics();
  EXPECT_EQ(statistics.members(), 1u);
  EXPECT_EQ(statistics.backlog(), 1u);
  EXPECT_EQ(statistics.in_flight(), 2u);
  EXPECT_EQ(statistics.delivered(), 2u);
  EXPECT_EQ(ToUs(statistics.oldest_unsettled()), death_us);
  group_.Ack(events);
  group_.Ack(group_.TakeOne(member.get()));
  statistics = group_.Statistics();
  EXPECT_EQ(statistics.acked(), 3u);
  EXPECT_EQ(statistics.in_flight(), 0u);
  EXPECT_EQ(statistics.backlog_bytes(), 0u);
  EXPECT_FALSE(statistics.has_oldest_unsettled());
}

TEST_F(GroupAdminTest, ANamespaceIsNotItsOwnDeadLetterNamespace) {
  const auto update = [this](const std::string& name) {
    return Call(server_.namespaces(), &Names::UpdateNamespace,
                Proto<v1::UpdateNamespaceRequest>(
                    absl::StrCat("namespace { name: 'default' options { "
                                 "dead_letter_namespace: '",
                                 name, "' } }")))
        .status;
  };
  const std::string field = "namespace.options.dead_letter_namespace";
  ExpectInvalid(update("default"), field, "another");
  ExpectInvalid(update("Dead"), field, "not Dead");
  ExpectInvalid(Call(server_.namespaces(), &Names::CreateNamespace,
                     Proto<v1::CreateNamespaceRequest>(
                         "name: 'n' options { dead_letter_namespace: 'n' }"))
                    .status,
                "options.dead_letter_namespace", "another");
  EXPECT_EQ(server_.Describe().options().dead_letter_namespace(), "");
  // It need not be there yet, and may be taken back.
  EXPECT_TRUE(update("dead").ok());
  EXPECT_EQ(server_.Describe().options().dead_letter_namespace(), "dead");
  EXPECT_TRUE(update("").ok());
  EXPECT_EQ(server_.Describe().options().dead_letter_namespace(), "");
}

}  // namespace
}  // namespace timecache::test

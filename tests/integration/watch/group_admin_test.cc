// The consumer groups of a namespace: made, described, changed and deleted.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/group_client.h"
#include "tests/support/test_server.h"

namespace timecache::test {
namespace {

using Groups = v1::GroupService::Stub;
using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  // The first of the options after an update that must succeed.
  std::string Updated(const std::string& options,
                      const std::vector<std::string>& mask) {
    const v1::Group group = Must(Update(options, mask)).group();
    EXPECT_EQ(group.options().SerializeAsString(),
              group_.Describe().options().SerializeAsString());
    const std::string text = group.options().ShortDebugString();
    return text.substr(0, text.find(" retry_delay"));
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

TEST_F(GroupAdminTest, TheKeyPrefixIsFixedAndRetryDelaysAreCleared) {
  Must(Create("g", "key_prefix: 'eu/' retry_delays { seconds: 5 }"));
  ExpectInvalid(Update("key_prefix: 'us/'").status, "group.options.key_prefix",
                "fixed");
  const v1::GroupOptions all =
      Must(Update("max_attempts: 7", {"*"})).group().options();
  EXPECT_EQ(all.max_attempts(), 7u);
  EXPECT_EQ(all.key_prefix(), "eu/");
  EXPECT_EQ(all.retry_delays_size(), 0);
  const auto delays = [this](const std::string& options,
                             const std::vector<std::string>& mask) {
    return Must(Update(options, mask)).group().options().retry_delays_size();
  };
  EXPECT_EQ(delays("retry_delays { seconds: 1 } retry_delays {}",
                   {"options.retry_delays", "*"}),
            2);
  EXPECT_EQ(delays("", {"options.retry_delays"}), 0);
}

TEST_F(GroupAdminTest, PositionsAndPagesOfAnotherKindAreRefused) {
  Must(Create("g"));
  const auto seek = [this](const std::string& position) {
    return Do(&Groups::SeekGroup,
              absl::StrCat("namespace: 'default' name: 'g' position { ",
                           position, " }"))
        .status;
  };
  ExpectInvalid(seek("resume_token: 'x'"), "position.resume_token", "damaged");
  ExpectInvalid(seek("time { seconds: -1 }"), "position.time", "1970");
  ExpectError(
      Do(&Groups::SeekGroup, "namespace: 'default' name: 'none'").status,
      StatusCode::NOT_FOUND, v1::GROUP_NOT_FOUND, "none");
  const auto list = [this](const std::string& more) {
    return Do(&Groups::ListUnsettled,
              absl::StrCat("namespace: 'default' name: 'g' ", more))
        .status;
  };
  ExpectInvalid(list("page_size: -1"), "page_size", "negative");
  ExpectInvalid(list("page_token: 'x'"), "page_token", "next_page_token");
  const std::string long_prefix(4'097, 'k');
  ExpectInvalid(list(absl::StrCat("key_prefix: '", long_prefix, "'")),
                "key_prefix", "4096");
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

}  // namespace
}  // namespace timecache::test

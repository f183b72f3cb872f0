// NamespaceService: namespaces made, described, changed, deleted and rotated
// while the server runs.
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using Names = v1::NamespaceService::Stub;
using grpc::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NamespaceTest : public ::testing::Test {
 protected:
  explicit NamespaceTest(const TestServerOptions& options = {})
      : server_(options) {}

  template <typename Request, typename Response>
  Reply<Response> Do(grpc::Status (Names::*method)(grpc::ClientContext*,
                                                   const Request&, Response*),
                     const std::string& request) {
    return Call(server_.namespaces(), method, Proto<Request>(request));
  }
  Reply<v1::CreateNamespaceResponse> Create(const std::string& options) {
    return Do(&Names::CreateNamespace,
              absl::StrCat("name: 'new' options { ", options, " }"));
  }
  Reply<v1::UpdateNamespaceResponse> Update(
      const std::string& options, const std::vector<std::string>& mask = {},
      const std::string& name = "default") {
    return Call(server_.namespaces(), &Names::UpdateNamespace,
                UpdateOf<v1::UpdateNamespaceRequest>(
                    absl::StrCat("namespace { name: '", name, "' options { ",
                                 options, " } }"),
                    mask));
  }
  // The options after an update that must succeed.
  v1::NamespaceOptions Updated(const std::string& options,
                               const std::vector<std::string>& mask) {
    const v1::Namespace now = Must(Update(options, mask)).namespace_();
    EXPECT_EQ(now.options().SerializeAsString(),
              server_.Describe().options().SerializeAsString());
    return now.options();
  }
  std::vector<std::string> List() {
    std::vector<std::string> names;
    const auto list = Must(Do(&Names::ListNamespaces, ""));
    for (const v1::Namespace& ns : list.namespaces()) {
      names.push_back(ns.name());
    }
    return names;
  }

  TestServer server_;
};

TEST_F(NamespaceTest, EveryRpcRefusesMalformedAndMissingNames) {
  for (const char* name : {"", "UPPER", "a_b", "-a"}) {
    const std::string request = absl::StrCat("name: '", name, "'");
    const char* limit = *name == '\0' ? "must be set" : "1 to 63 characters";
    ExpectInvalid(Do(&Names::CreateNamespace, request).status, "name", limit);
    ExpectInvalid(Do(&Names::GetNamespace, request).status, "name", limit);
    ExpectInvalid(Update("", {}, name).status, "namespace.name", limit);
    ExpectInvalid(Do(&Names::DeleteNamespace, request).status, "name", limit);
    ExpectInvalid(Do(&Names::RotateNamespace, request).status, "name", limit);
  }
  ExpectInvalid(Do(&Names::UpdateNamespace, "").status, "namespace.name",
                "must be set");
  const std::string absent = "name: 'absent'";
  for (const grpc::Status& status :
       {Do(&Names::GetNamespace, absent).status,
        Update("", {}, "absent").status,
        Do(&Names::DeleteNamespace, absent).status,
        Do(&Names::RotateNamespace, absent).status}) {
    ExpectError(status, StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND,
                "absent");
  }
}

TEST_F(NamespaceTest, TheNumberOfShardsIsFixedAtCreation) {
  const auto expect_fixed = [](const grpc::Status& status,
                               const std::string& number) {
    ExpectInvalid(status, "namespace.options.num_shards",
                  "fixed at creation, to " + number);
  };
  expect_fixed(Update("num_shards: 32").status, "16");
  EXPECT_TRUE(Update("num_shards: 16").status.ok());
  server_.Create("one", "num_shards: 1");
  // A mask of all leaves it out, unless it is set.
  for (const char* all : {"options", "*"}) {
    SCOPED_TRACE(all);
    EXPECT_TRUE(Update("", {all}, "one").status.ok());
    EXPECT_TRUE(Update("num_shards: 1", {all}, "one").status.ok());
    expect_fixed(Update("num_shards: 2", {all}, "one").status, "1");
  }
  EXPECT_EQ(server_.Describe("one").options().num_shards(), 1u);
  // Its default is another.
  expect_fixed(Update("", {"options.num_shards"}, "one").status, "1");
  EXPECT_TRUE(Update("", {"options.num_shards"}).status.ok());
  EXPECT_TRUE(
      Update("num_shards: 1", {"options.num_shards"}, "one").status.ok());
}

TEST_F(NamespaceTest, TheNumberOfPartitionsIsFixedAtCreation) {
  const auto expect_fixed = [](const grpc::Status& status,
                               const std::string& number) {
    ExpectInvalid(status, "namespace.options.num_partitions",
                  "fixed at creation, to " + number);
  };
  expect_fixed(Update("num_partitions: 2").status, "1");
  server_.Create("three", "num_partitions: 3");
  for (const char* all : {"options", "*"}) {
    SCOPED_TRACE(all);
    EXPECT_TRUE(Update("", {all}, "three").status.ok());
    EXPECT_TRUE(Update("num_partitions: 3", {all}, "three").status.ok());
    expect_fixed(Update("num_partitions: 4", {all}, "three").status, "3");
  }
  EXPECT_EQ(server_.Describe("three").options().num_partitions(), 3u);
  ExpectInvalid(
      Do(&Names::CreateNamespace, "name: 'many' options { num_partitions: 65 }")
          .status,
      "options.num_partitions", "64");
}

TEST_F(NamespaceTest, PartitionsAreNoNamespacesOfTheirOwn) {
  server_.Create("three", "num_partitions: 3");
  ExpectInvalid(Do(&Names::GetNamespace, "name: 'three#1'").status, "name",
                "1 to 63 characters");
  ExpectInvalid(Do(&Names::DeleteNamespace, "name: 'three#1'").status, "name",
                "1 to 63 characters");
  EXPECT_TRUE(Do(&Names::DeleteNamespace, "name: 'three'").status.ok());
  ExpectError(Do(&Names::GetNamespace, "name: 'three'").status,
              StatusCode::NOT_FOUND, v1::NAMESPACE_NOT_FOUND, "three");
}

TEST_F(NamespaceTest, AMaskChangesWhatItNamesAndNothingElse) {
  Must(
      Update("sliding: true max_entries: 7 max_bytes: 1000 "
             "limit_policy: LIMIT_POLICY_EVICT_OLDEST"));
  v1::NamespaceOptions before = server_.Describe().options();
  v1::NamespaceOptions after =
      Updated("max_entries: 9 max_bytes: 1", {"options.max_entries"});
  before.set_max_entries(9);
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());
  EXPECT_THAT(server_.observed().back(),
              "namespace_updated default max_entries: 9");
  // What it names and what is not set takes its default.
  after = Updated("", {"options.sliding", "options.limit_policy"});
  before.set_sliding(false);
  before.set_limit_policy(v1::LIMIT_POLICY_REJECT);
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());
  after = Updated("max_bytes: 0 ttl { seconds: 60 }",
                  {"options.max_entries", "options.max_bytes"});
  before.set_max_entries(0);
  before.set_max_bytes(0);
  EXPECT_EQ(after.SerializeAsString(), before.SerializeAsString());
  // What it does not name is not even looked at.
  EXPECT_EQ(Updated("num_buckets: 1 sliding: true", {"options.sliding"})
                .num_buckets(),
            101u);
}

TEST_F(NamespaceTest, AMaskThatNamesAnythingElseIsRefused) {
  const std::string before = server_.Describe().options().SerializeAsString();
  for (const char* path :
       {"", "ttl", "options.", "options.nonsense", "options.*",
        "options.ttl.seconds", "Options", "name", "statistics",
        "statistics.entries", "bucket_width", "namespace.options.ttl"}) {
    SCOPED_TRACE(path);
    const auto status =
        Update("max_entries: 7", {"options.max_entries", path}).status;
    ExpectInvalid(status, "update_mask", "options.ttl");
    EXPECT_THAT(PartsOf(status).message,
                HasSubstr(absl::StrCat("\"", path, "\"")));
    EXPECT_EQ(server_.Describe().options().SerializeAsString(), before);
  }
  const auto endless = Update("", {std::string(100'000, 'x')}).status;
  ExpectInvalid(endless, "update_mask", "options.ttl");
  EXPECT_LT(PartsOf(endless).message.size(), 1'000u);
  ExpectInvalid(
      Update("", std::vector<std::string>(100'000, "options.ttl")).status,
      "update_mask", "100000");
}

TEST_F(NamespaceTest, StatisticsTellWhatIsInAndWhatHappened) {
  server_.Create("full",
                 "max_entries: 1 limit_policy: LIMIT_POLICY_EVICT_OLDEST");
  server_.Put("a", "1", 0, "full");
  server_.Put("b", "22", 0, "full");
  v1::NamespaceStatistics now = server_.Describe("full").statistics();
  EXPECT_EQ(now.entries(), 1u);
  EXPECT_EQ(now.bytes(), 3u);
  EXPECT_GT(now.memory_bytes(), 0u);
  EXPECT_EQ(now.live_buckets(), 1u);
  EXPECT_EQ(now.puts(), 2u);
  server_.AdvanceBy(kTtlUs + kWidthUs);
  server_.Put("c", "", 0, "full");
  EXPECT_EQ(server_.Rotate("full"), 1u);
  server_.AdvanceBy(1);
  now = server_.Describe("full").statistics();
  EXPECT_EQ(now.entries(), 0u);
  EXPECT_EQ(now.puts(), 3u);
  EXPECT_EQ(now.hits(), 0u);
  EXPECT_EQ(now.misses(), 0u);
  EXPECT_EQ(now.evicted(), 1u);
  EXPECT_EQ(now.expired(), 1u);
  EXPECT_EQ(now.rotated(), 1u);
  EXPECT_EQ(now.events_retained(), 3u);
  EXPECT_GT(now.events_retained_bytes(), 0u);
  EXPECT_EQ(ToUs(now.watermark()), server_.now_us());
  EXPECT_EQ(now.watchers(), 0u);
}

TEST_F(NamespaceTest, ListsInPages) {
  for (const char* name : {"a", "b", "c"}) server_.Create(name);
  const auto page = [this](const std::string& request) {
    std::vector<std::string> names;
    const auto list = Must(Do(&Names::ListNamespaces, request));
    for (const auto& each : list.namespaces()) names.push_back(each.name());
    return std::pair(names, list.next_page_token());
  };
  const auto [first, to_second] = page("page_size: 2");
  EXPECT_THAT(first, ElementsAre("a", "b"));
  ASSERT_FALSE(to_second.empty());
  // What comes and goes in between neither repeats nor hides the others.
  server_.Create("aa");
  Must(Do(&Names::DeleteNamespace, "name: 'b'"));
  const auto [second, end] =
      page(absl::StrCat("page_size: 2 page_token: '", to_second, "'"));
  EXPECT_THAT(second, ElementsAre("c", "default"));
  EXPECT_EQ(end, "");
  EXPECT_THAT(page("page_size: 4").first,
              ElementsAre("a", "aa", "c", "default"));
  EXPECT_EQ(page("page_size: 4").second, "");
  ExpectInvalid(Do(&Names::ListNamespaces, "page_size: -1").status, "page_size",
                "negative");
  ExpectInvalid(Do(&Names::ListNamespaces, "page_token: 'No_Name'").status,
                "page_token", "next_page_token");
}

class ManyNamespacesTest : public NamespaceTest {
 protected:
  static constexpr int kNamespaces = 10'000;
  static constexpr size_t kMaxDefaultMessageBytes = 4 << 20;

  ManyNamespacesTest() : NamespaceTest(Options()) {
    server::NamespaceOptions options;
    options.num_shards = 1;
    // As long as a description may be.
    options.max_entries = INT64_MAX;
    options.max_bytes = INT64_MAX;
    options.max_operations_per_second = 1'000'000'000;
    options.dead_letter_namespace = std::string(63, 'd');
    // With "default".
    for (int i = 1; i < kNamespaces; ++i) {
      const std::string number = absl::StrCat(i);
      const std::string name = std::string(63 - number.size(), 'n') + number;
      const auto map = server_.registry().Create(name, options);
      EXPECT_TRUE(map.ok()) << map.status();
      if (!map.ok()) return;
      (*map)->Apply(server::Operation::Put("k", "v"), server_.now_us());
    }
  }

  static TestServerOptions Options() {
    TestServerOptions options;
    options.limits.max_namespaces = kNamespaces;
    return options;
  }
};

TEST_F(ManyNamespacesTest, EveryPageIsBelowWhatClientsTake) {
  std::set<std::string> names;
  v1::ListNamespacesRequest request;
  // As long as a description may be.
  request.set_include_statistics(true);
  int pages = 0;
  do {
    const auto page =
        Must(Call(server_.namespaces(), &Names::ListNamespaces, request));
    EXPECT_LT(page.ByteSizeLong(), kMaxDefaultMessageBytes / 4);
    for (const auto& each : page.namespaces()) {
      EXPECT_TRUE(names.insert(each.name()).second) << each.name();
    }
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(names.size(), size_t{kNamespaces});
  EXPECT_EQ(pages, kNamespaces / 1'000);

  request.set_page_size(INT32_MAX);
  const auto largest =
      Must(Call(server_.namespaces(), &Names::ListNamespaces, request));
  EXPECT_EQ(largest.namespaces_size(), 4'000);
  EXPECT_LT(largest.ByteSizeLong(), kMaxDefaultMessageBytes / 2);
}

TEST_F(ManyNamespacesTest, AServersDescriptionDoesNotGrow) {
  const auto server =
      Must(Call(server_.about(), &v1::ServerService::Stub::GetServer,
                v1::GetServerRequest()));
  EXPECT_EQ(server.namespaces().used(), uint64_t{kNamespaces});
  EXPECT_EQ(server.entries().used(), uint64_t{kNamespaces - 1});
  EXPECT_EQ(server.bytes().used(), uint64_t{2 * (kNamespaces - 1)});
  EXPECT_LT(server.ByteSizeLong(), 1'000u);
}

}  // namespace
}  // namespace timecache::test

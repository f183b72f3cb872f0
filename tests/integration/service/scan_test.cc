// Scan over the wire: what it finds, and how much it sends at once.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

constexpr size_t kMaxDefaultMessageBytes = 4 << 20;

class ScanTest : public ::testing::Test {
 protected:
  // The pages of a scan that must succeed.
  std::vector<v1::ScanResponse> Scan(const std::string& request = "") {
    grpc::ClientContext context;
    SetDeadline(&context);
    auto reader = server_.data()->Scan(
        &context, Proto<v1::ScanRequest>("namespace: 'default' " + request));
    std::vector<v1::ScanResponse> pages;
    v1::ScanResponse page;
    while (reader->Read(&page)) pages.push_back(page);
    const grpc::Status status = reader->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return pages;
  }

  // Key to value, each once.
  std::map<std::string, std::string> EntriesOf(
      const std::vector<v1::ScanResponse>& pages) {
    std::map<std::string, std::string> entries;
    for (const auto& page : pages) {
      for (const auto& entry : page.entries()) {
        EXPECT_TRUE(entries.emplace(entry.key(), entry.value()).second)
            << entry.key() << " came twice";
      }
    }
    return entries;
  }

  TestServer server_;
};

using Pages = std::vector<v1::ScanResponse>;

// A page of its own for each call and connection, while other entries come and
// go.
TEST_F(ScanTest, AnyConnectionGoesOnAtAPosition) {
  constexpr int kEntries = 20'000;
  server_.Fill(kEntries, "key", "value");
  server_.Fill(5'000, "go", "value");
  Pages pages;
  std::string position;
  for (int i = 0;; ++i) {
    const auto data = v1::TimeCacheService::NewStub(server_.NewChannel());
    grpc::ClientContext context;
    SetDeadline(&context);
    auto request = Proto<v1::ScanRequest>("namespace: 'default'");
    request.set_position(position);
    const auto reader = data->Scan(&context, request);
    v1::ScanResponse page;
    if (!reader->Read(&page)) {
      EXPECT_TRUE(reader->Finish().ok());
      break;
    }
    context.TryCancel();
    ASSERT_FALSE(page.position().empty());
    EXPECT_LE(page.position().size(), 128u);
    position = page.position();
    pages.push_back(std::move(page));
    server_.Fill(1'000, absl::StrCat("come", i, "-"), "value");
    for (int j = 0; j < 10; ++j) {
      v1::RemoveRequest remove;
      remove.set_namespace_("default");
      remove.set_key(absl::StrCat("go", 10 * i + j));
      Must(Call(server_.data(), &v1::TimeCacheService::Stub::Remove, remove));
    }
  }
  EXPECT_GE(pages.size(), 20u);
  const auto entries = EntriesOf(pages);
  for (int i = 0; i < kEntries; ++i) {
    EXPECT_EQ(entries.count(absl::StrCat("key", i)), 1u) << i;
  }
}

// Also where a step of the scan makes several pages.
TEST_F(ScanTest, EveryPageHasItsPosition) {
  server_.Fill(40, "large", std::string(700'000, 'v'));
  const Pages pages = Scan();
  ASSERT_GE(pages.size(), 30u);
  for (size_t i = 0; i < pages.size(); i += 7) {
    grpc::ClientContext context;
    SetDeadline(&context);
    auto request = Proto<v1::ScanRequest>("namespace: 'default'");
    request.set_position(pages[i].position());
    const auto reader = server_.data()->Scan(&context, request);
    v1::ScanResponse page;
    std::vector<std::string> keys;
    while (reader->Read(&page)) {
      for (const auto& entry : page.entries()) keys.push_back(entry.key());
    }
    EXPECT_TRUE(reader->Finish().ok());
    std::vector<std::string> rest;
    for (size_t j = i + 1; j < pages.size(); ++j) {
      for (const auto& entry : pages[j].entries()) rest.push_back(entry.key());
    }
    EXPECT_EQ(keys, rest);
  }
}

TEST_F(ScanTest, APositionOfAnotherScanIsRefused) {
  server_.Fill(10, "key", "value");
  const std::string position = Scan().at(0).position();
  const auto refused = [&](std::string text, const std::string& bytes) {
    grpc::ClientContext context;
    SetDeadline(&context);
    auto request = Proto<v1::ScanRequest>(text);
    request.set_position(bytes);
    const auto reader = server_.data()->Scan(&context, request);
    v1::ScanResponse page;
    EXPECT_FALSE(reader->Read(&page));
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
        << status.error_message();
    EXPECT_NE(status.error_message().find("position"), std::string::npos);
  };
  refused("namespace: 'default' key_prefix: 'k'", position);
  std::string damaged = position;
  damaged.back() ^= 1;
  refused("namespace: 'default'", damaged);
  refused("namespace: 'default'", "short");
  refused("namespace: 'default'", std::string(1'000, 'x'));
  server_.Create("other", "");
  refused("namespace: 'other'", position);
  Must(Call(server_.namespaces(), &v1::NamespaceService::Stub::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'default'")));
  server_.Create("default", "");
  refused("namespace: 'default'", position);
}

// The reader has gRPC's default limit of 4 MiB a message.
TEST_F(ScanTest, LargeValuesComeInPagesThatADefaultClientTakes) {
  constexpr int kEntries = 20;
  const std::string value(1 << 20, 'v');
  server_.Fill(kEntries, "large", value);
  server_.Fill(500, "middling", std::string(10'000, 'm'));
  const auto pages = Scan();
  EXPECT_EQ(EntriesOf(pages).size(), static_cast<size_t>(kEntries) + 500);
  for (const auto& page : pages) {
    EXPECT_LT(page.ByteSizeLong(), kMaxDefaultMessageBytes / 2);
  }
}

TEST_F(ScanTest, ACancelledScanEndsAndTheServerGoesOn) {
  const std::string value(100'000, 'v');
  server_.Fill(300, "", value);
  grpc::ClientContext context;
  SetDeadline(&context);
  auto reader = server_.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  ASSERT_TRUE(reader->Read(&page));
  context.TryCancel();
  while (reader->Read(&page)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(EntriesOf(Scan("keys_only: true")).size(), 300u);
}

TEST_F(ScanTest, ANamespaceThatIsDeletedMeanwhileEndsTheScan) {
  const std::string value(1 << 20, 'v');
  server_.Fill(30, "", value);
  grpc::ClientContext context;
  SetDeadline(&context);
  auto reader = server_.data()->Scan(
      &context, Proto<v1::ScanRequest>("namespace: 'default'"));
  v1::ScanResponse page;
  ASSERT_TRUE(reader->Read(&page));
  // What flow control lets through is far less than what is left.
  Must(Call(server_.namespaces(), &v1::NamespaceService::Stub::DeleteNamespace,
            Proto<v1::DeleteNamespaceRequest>("name: 'default'")));
  while (reader->Read(&page)) {
  }
  ExpectError(reader->Finish(), grpc::StatusCode::NOT_FOUND,
              v1::NAMESPACE_NOT_FOUND, "default");
}

}  // namespace
}  // namespace timecache::test

// Scan over the wire: what it finds, and how much it sends at once.
#include <map>
#include <string>
#include <vector>

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

TEST_F(ScanTest, OfNothingSendsNoPage) { EXPECT_TRUE(Scan().empty()); }

TEST_F(ScanTest, FindsEveryEntryOnceInBoundedPages) {
  constexpr int kEntries = 3'500;
  server_.Fill(kEntries, "key", "value");
  const auto pages = Scan();
  for (const auto& page : pages) {
    EXPECT_GE(page.entries_size(), 1);
    EXPECT_LE(page.entries_size(), 1'000);
  }
  const auto entries = EntriesOf(pages);
  ASSERT_EQ(entries.size(), static_cast<size_t>(kEntries));
  EXPECT_EQ(entries.at("key77"), "value");
}

TEST_F(ScanTest, EntriesAreWhole) {
  const uint64_t version =
      server_.Put("a", "one", 5 * server::kMicrosPerSecond);
  const v1::Entry entry = Scan().at(0).entries(0);
  EXPECT_EQ(entry.key(), "a");
  EXPECT_EQ(entry.value(), "one");
  EXPECT_EQ(entry.version(), version);
  EXPECT_EQ(ToUs(entry.put_time()), kStartUs);
  EXPECT_EQ(ToUs(entry.deadline()), kStartUs + 5 * server::kMicrosPerSecond);
}

TEST_F(ScanTest, FiltersByPrefixAndLeavesValuesOut) {
  server_.Put("apple", "1");
  server_.Put("apricot", "2");
  server_.Put("banana", "3");
  EXPECT_EQ(
      EntriesOf(Scan("key_prefix: 'ap'")),
      (std::map<std::string, std::string>{{"apple", "1"}, {"apricot", "2"}}));
  EXPECT_EQ(
      EntriesOf(Scan("key_prefix: 'ap' keys_only: true")),
      (std::map<std::string, std::string>{{"apple", ""}, {"apricot", ""}}));
  EXPECT_TRUE(Scan("key_prefix: 'c'").empty());
}

TEST_F(ScanTest, TheDeadAreNotFound) {
  server_.Put("short", "1", server::kMicrosPerSecond);
  server_.Put("long", "2");
  server_.AdvanceTo(DeathUs(kStartUs, server::kMicrosPerSecond) - 1);
  EXPECT_EQ(EntriesOf(Scan()).size(), 2u);
  server_.AdvanceTo(DeathUs(kStartUs, server::kMicrosPerSecond));
  EXPECT_EQ(EntriesOf(Scan()),
            (std::map<std::string, std::string>{{"long", "2"}}));
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

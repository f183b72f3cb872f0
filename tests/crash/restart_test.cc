// What a durable server says and keeps when it starts again, or must not.

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journal/temporary_directory.h"
#include "tests/support/server_process.h"
#include "timecache/client.h"
#include "timecache/virtual_clock.h"

namespace timecache::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RestartTest : public ::testing::Test {
 protected:
  std::vector<std::string> Arguments(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"--listen", "127.0.0.1:0",
                                          "--journal", journal_};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static void Create(const Client& client, Durability durability) {
    NamespaceOptions options;
    options.ttl = absl::Hours(1);
    options.durability = durability;
    const auto created = client.CreateNamespace("kept", options);
    EXPECT_TRUE(created.ok()) << created.status();
  }

  server::TemporaryDirectory directory_;
  const std::string journal_ = directory_.path() + "/journal";
};

TEST_F(RestartTest, AnOrderlyEndKeepsEverythingOnTheRealClock) {
  for (int start = 0; start < 3; ++start) {
    ServerProcess server(Arguments());
    // Those that were recovered, too.
    EXPECT_EQ(server.started()["namespaces"], start == 0 ? 1 : 2);
    const Client client(server.address());
    if (start == 0) {
      Create(client, Durability::kSync);
      EXPECT_TRUE(client.In("kept").Put("key", "value").ok());
    }
    const auto entry = client.In("kept").Get("key");
    ASSERT_TRUE(entry.ok() && entry->has_value()) << entry.status();
    EXPECT_EQ((*entry)->value, "value");
    server.process().Signal(SIGTERM);
    EXPECT_EQ(server.process().Wait().code, 0);
  }
}

TEST_F(RestartTest, ANamespaceThatIsConfiguredGoesOnWithItsEntries) {
  const std::string config = directory_.path() + "/timecached.yaml";
  const auto configure = [&](const std::string& ttl) {
    std::ofstream(config) << "listeners: [{address: \"127.0.0.1:0\"}]\n"
                             "journal: {directory: "
                          << journal_
                          << "}\nnamespaces: [{name: kept, options: {ttl: "
                          << ttl << ", durability: sync}}]\n";
  };
  for (const char* ttl : {"1h", "2h"}) {
    configure(ttl);
    ServerProcess server({"--config", config});
    const Client client = Client(server.address()).In("kept");
    EXPECT_TRUE(client.Put(ttl, "value").ok());
    const auto entry = client.Get("1h");
    ASSERT_TRUE(entry.ok() && entry->has_value()) << entry.status();
    server.process().Signal(SIGKILL);
    server.process().Wait();
  }
  ServerProcess server({"--config", config});
  const auto kept = Client(server.address()).GetNamespace("kept");
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->options.ttl, absl::Hours(2));
  EXPECT_EQ(kept->options.durability, Durability::kSync);
}

TEST_F(RestartTest, WithoutAJournalADurableNamespaceIsRefused) {
  ServerProcess server;
  NamespaceOptions options;
  options.durability = Durability::kAsync;
  const auto created = Client(server.address()).CreateNamespace("x", options);
  EXPECT_TRUE(absl::IsInvalidArgument(created.status()));
  EXPECT_THAT(std::string(created.status().message()),
              AllOf(HasSubstr("durability"), HasSubstr("journal.directory")));
}

}  // namespace
}  // namespace timecache::test

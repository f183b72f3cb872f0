// Events that nobody watches give way to puts, over the whole server.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/memory_budget.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr int kNamespaces = 6;
constexpr int kValueBytes = 100'000;
constexpr int kPutsEach = 600;

class RetainedMemoryTest : public ::testing::Test {
 protected:
  RetainedMemoryTest() { server::MemoryBudget::Process().SetLimit(256 * kMiB); }
  ~RetainedMemoryTest() override {
    server::MemoryBudget::Process().SetLimit(0);
  }

  TestServer server_;
};

// 60 MB into each of six namespaces, one after the other, of which the last
// entries are dead before the next one's first.
TEST_F(RetainedMemoryTest, PutsGoOnWhateverHasDiedBefore) {
  const std::string value(kValueBytes, 'v');
  std::vector<std::string> tokens;
  for (int n = 0; n < kNamespaces; ++n) {
    const std::string name = absl::StrCat("ns-", n);
    server_.Create(name, "ttl { seconds: 2 } event_retention_bytes: 268435456");
    // Gone before anything dies.
    WatchReader watcher(server_.data(), name);
    ASSERT_TRUE(watcher.Next());
    tokens.push_back(watcher.token(name));
    watcher.Cancel();
    watcher.Drain();
    server_.AwaitWatchers(0, name);
  }
  for (int round = 0; round < 2; ++round) {
    for (int n = 0; n < kNamespaces; ++n) {
      for (int i = 0; i < kPutsEach; ++i) {
        // Fails the test if it is refused.
        server_.Put(absl::StrCat(round, ".", i), value, 0,
                    absl::StrCat("ns-", n));
      }
      ASSERT_FALSE(HasFailure()) << "ns-" << n << " in round " << round;
      server_.AdvanceBy(3 * server::kMicrosPerSecond);
    }
  }
  EXPECT_LE(server::MemoryBudget::Process().used_bytes(), 192 * kMiB);
  for (int n = 0; n < kNamespaces; ++n) {
    const std::string name = absl::StrCat("ns-", n);
    const auto statistics = server_.Describe(name).statistics();
    EXPECT_EQ(statistics.expired(), 2u * kPutsEach);
    EXPECT_EQ(statistics.events_reclaimed() + statistics.events_retained(),
              2u * kPutsEach);
    v1::WatchExpiredRequest request;
    request.add_namespaces(name);
    request.add_resume_tokens(tokens[static_cast<size_t>(n)]);
    WatchReader watcher(server_.data(), request);
    while (watcher.events() + watcher.lost() < 2u * kPutsEach) {
      ASSERT_TRUE(watcher.Next());
    }
    EXPECT_EQ(watcher.events() + watcher.lost(), 2u * kPutsEach);
    EXPECT_EQ(watcher.lost(), statistics.events_reclaimed()) << name;
    watcher.Cancel();
    watcher.Drain();
  }
}

}  // namespace
}  // namespace timecache::test

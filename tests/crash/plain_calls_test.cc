// Plain calls of many threads, which share a stream or do not, under kills of the
// server.

#include <array>
#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/crash/durable_server.h"
#include "tests/support/await.h"
#include "timecache/client.h"
#include "timecache/status.h"

namespace timecache::test {
namespace {

constexpr int kThreads = 16;
constexpr int kKills = 8;

// Whether calls share a stream.
class PlainCallsTest : public ::testing::TestWithParam<bool> {
 protected:
  PlainCallsTest() {
    NamespaceOptions options;
    options.durability = Durability::kSync;
    const auto created =
        Client(server_.address()).CreateNamespace("calls", options);
    EXPECT_TRUE(created.ok()) << created.status();
  }

  Client NewClient() const {
    ClientOptions options;
    options.batching = GetParam();
    // A killed server ends its calls, and a busy machine is slow.
    options.timeout = kAwaitPatience;
    return Client(server_.address(), options).In("calls");
  }

  // Puts keys that nobody else has, each with itself as its value, until it is
  // to stop.
  void Write(int thread) {
    std::vector<std::string>& stored = stored_[static_cast<size_t>(thread)];
    for (int i = 0; !stops_; ++i) {
      const std::string key = absl::StrCat(thread, "/", i);
      const auto put = client_.Put(key, key);
      if (put.ok()) {
        stored.push_back(key);
        ++answers_;
      } else {
        EXPECT_TRUE(absl::IsUnavailable(put.status())) << put.status();
        ++failures_;
      }
      // Safe to repeat: it outlives most kills.
      const auto got = client_.Get(key);
      if (!got.ok()) {
        EXPECT_TRUE(absl::IsUnavailable(got.status())) << got.status();
        continue;
      }
      const bool found = got->has_value();
      if (found) {
        EXPECT_EQ((*got)->value, key);
      }
      EXPECT_TRUE(found || !put.ok()) << key;
      if (found && !put.ok()) {
        EXPECT_TRUE(MaybeApplied(put.status())) << key << ": " << put.status();
      }
    }
  }

  DurableServer server_;
  const Client client_ = NewClient();
  std::atomic<bool> stops_{false};
  std::atomic<int> answers_{0};
  std::atomic<int> failures_{0};
  std::array<std::vector<std::string>, kThreads> stored_;
};

TEST_P(PlainCallsTest, EachHasItsOwnAnswerAndWhatWasAnsweredIsStored) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] { Write(t); });
  }
  for (int kill = 0; kill < kKills; ++kill) {
    const int enough = answers_ + 20 * kThreads;
    EXPECT_TRUE(Await([&] { return answers_ >= enough; }));
    server_.Kill();
    server_.Restart();
  }
  stops_ = true;
  for (std::thread& thread : threads) thread.join();
  // Some were under way.
  EXPECT_GT(failures_, 0);
  const Client client = NewClient();
  for (const auto& keys : stored_) {
    for (const std::string& key : keys) {
      const auto got = client.Get(key);
      ASSERT_TRUE(got.ok() && got->has_value()) << key << ": " << got.status();
      EXPECT_EQ((*got)->value, key);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Batching, PlainCallsTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "On" : "Off";
                         });

}  // namespace
}  // namespace timecache::test

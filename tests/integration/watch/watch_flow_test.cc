// WatchExpired under load: large deaths, slow readers, filters that let nothing
// pass.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

constexpr size_t kMaxWatchMessageBytes = 4 << 20;
constexpr int kBatchEvents = 8'192;

class WatchFlowTest : public ::testing::Test {
 protected:
  TestServer server_;
};

TEST_F(WatchFlowTest, ABucketOfManyTinyEventsComesInMessagesOfBoundedSize) {
  constexpr int kEvents = 5 * kBatchEvents + 7;
  WatchReader reader(server_.data(), "default");
  ASSERT_TRUE(reader.Next());
  server_.Fill(kEvents, "k", "");
  server_.AdvanceBy(2 * kTtlUs);
  std::set<std::string> keys;
  for (const auto& event : reader.ReadUpTo(server_.now_us())) {
    EXPECT_TRUE(keys.insert(event.key()).second) << event.key() << " twice";
  }
  EXPECT_EQ(keys.size(), static_cast<size_t>(kEvents));
  EXPECT_EQ(reader.lost(), 0u);
  EXPECT_LT(reader.largest_message_bytes(), kMaxWatchMessageBytes);
}

TEST_F(WatchFlowTest, LargeValuesComeInMessagesThatADefaultClientTakes) {
  WatchReader reader(server_.data(), "default");
  ASSERT_TRUE(reader.Next());
  server_.Fill(20, "large", std::string(1 << 20, 'v'));
  server_.Fill(1'000, "middling", std::string(10'000, 'm'));
  server_.AdvanceBy(2 * kTtlUs);
  EXPECT_EQ(reader.ReadUpTo(server_.now_us()).size(), 1'020u);
  EXPECT_EQ(reader.lost(), 0u);
  EXPECT_LT(reader.largest_message_bytes(), kMaxWatchMessageBytes / 2);
}

// Reads nothing while far more dies than is retained, then all that is left.
TEST_F(WatchFlowTest, AStalledReaderIsToldExactlyHowManyItLost) {
  constexpr int kRounds = 30;
  constexpr int kEventsPerRound = 20;
  server_.Create("small", "event_retention_bytes: 1048576");
  WatchReader stalled(server_.data(), "small");
  WatchReader other(server_.data(), "small");
  ASSERT_TRUE(stalled.Next() && other.Next());
  for (int round = 0; round < kRounds; ++round) {
    server_.Fill(kEventsPerRound, absl::StrCat(round, "/"),
                 std::string(50'000, 'v'), "small");
    server_.AdvanceBy(2 * kTtlUs);
    // Nobody is slowed down by the one that stands.
    EXPECT_EQ(other.ReadUpTo(server_.now_us(), "small").size(),
              static_cast<size_t>(kEventsPerRound));
  }
  const auto events = stalled.ReadUpTo(server_.now_us(), "small");
  EXPECT_GT(events.size(), 0u);
  EXPECT_GT(stalled.lost(), 0u);
  EXPECT_EQ(events.size() + stalled.lost(),
            static_cast<size_t>(kRounds) * kEventsPerRound);
  EXPECT_EQ(other.lost(), 0u);
  std::set<uint64_t> versions;
  for (const auto& event : events) {
    EXPECT_TRUE(versions.insert(event.version()).second);
  }
  // And the stream goes on.
  server_.Put("after", "", 0, "small");
  server_.AdvanceBy(2 * kTtlUs);
  EXPECT_EQ(stalled.ReadUpTo(server_.now_us(), "small").size(), 1u);
}

TEST_F(WatchFlowTest, TheWatermarkMovesWhenEverythingIsFilteredOut) {
  WatchReader reader(server_.data(),
                     Proto<v1::WatchExpiredRequest>(
                         "namespaces: 'default' key_prefix: 'match'"));
  ASSERT_TRUE(reader.Next());
  server_.Fill(40, "other", std::string(1 << 20, 'v'));
  server_.AdvanceBy(2 * kTtlUs);
  EXPECT_TRUE(reader.ReadUpTo(server_.now_us()).empty());
  EXPECT_EQ(reader.lost(), 0u);
}

// What it costs to bring the watermark up to date does not depend on how many
// want to hear it.
TEST_F(WatchFlowTest, HeartbeatsOfManyStreamsShareOneAdvance) {
  constexpr int kStreams = 40;
  constexpr int kTicks = 10;
  std::vector<std::unique_ptr<WatchReader>> readers;
  for (int i = 0; i < kStreams; ++i) {
    readers.push_back(std::make_unique<WatchReader>(
        server_.data(),
        Proto<v1::WatchExpiredRequest>(
            "namespaces: 'default' heartbeat_interval { nanos: 10000000 }")));
    ASSERT_TRUE(readers.back()->Next());
  }
  const auto map = server_.registry().Find("default").value();
  const uint64_t before = map->advances();
  for (int tick = 0; tick < kTicks; ++tick) {
    server_.AdvanceBy(10'000);
    for (auto& reader : readers) reader->ReadUpTo(server_.now_us());
  }
  // The reaper's, one for the heartbeats, and one that another thread begins
  // before that has ended.
  EXPECT_LE(map->advances() - before, uint64_t{3 * kTicks});
  EXPECT_GE(map->advances() - before, uint64_t{kTicks});
}

}  // namespace
}  // namespace timecache::test

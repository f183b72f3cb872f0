// VirtualClock: time in a test's hands, and what a watch has seen by then.
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/test_server.h"
#include "tests/support/watch_reader.h"

namespace timecache::test {
namespace {

using VirtualClock = testing::v1::VirtualClockService::Stub;

class VirtualClockTest : public ::testing::Test {
 protected:
  Reply<testing::v1::AdvanceResponse> Advance(const std::string& request) {
    return Call(server_.clock(), &VirtualClock::Advance,
                Proto<testing::v1::AdvanceRequest>(request));
  }
  int64_t Now() {
    return ToUs(Must(Call(server_.clock(), &VirtualClock::Now,
                          testing::v1::NowRequest()))
                    .now());
  }

  TestServer server_;
};

TEST_F(VirtualClockTest, StandsStillUntilItIsAdvanced) {
  EXPECT_EQ(Now(), kStartUs);
  EXPECT_EQ(ToUs(Must(Advance("by { seconds: 2 nanos: 1 }")).now()),
            kStartUs + 2'000'001);
  EXPECT_EQ(Now(), kStartUs + 2'000'001);
  EXPECT_EQ(ToUs(Must(Advance("to { seconds: 5000 nanos: 999999999 }")).now()),
            5'001 * server::kMicrosPerSecond);
  EXPECT_EQ(Now(), 5'001 * server::kMicrosPerSecond);
}

TEST_F(VirtualClockTest, NeverGoesBack) {
  ExpectInvalid(Advance("by { nanos: -1000 }").status, "by", "negative");
  ExpectInvalid(Advance("to { seconds: 1000 }").status, "to",
                "1970-01-01T00:16:40.000001Z");
  EXPECT_EQ(Now(), kStartUs);
}

TEST_F(VirtualClockTest, RefusesWhatIsMalformedOrPastTheYear9999) {
  ExpectInvalid(Advance("").status, "target", "by or to");
  ExpectInvalid(Advance("by { seconds: 1 nanos: -1 }").status, "by",
                "google.protobuf.Duration");
  ExpectInvalid(Advance("to { nanos: -1 }").status, "to",
                "google.protobuf.Timestamp");
  ExpectInvalid(Advance("to { seconds: 253402300800 }").status, "to",
                "google.protobuf.Timestamp");
  ExpectInvalid(Advance("by { seconds: 253402300000 }").status, "by", "9999");
  EXPECT_EQ(Now(), kStartUs);
}

TEST_F(VirtualClockTest, AfterAdvanceAWatchReadToItsTimeHasSeenAll) {
  WatchReader reader(server_.data(), "default");
  ASSERT_TRUE(reader.Next());
  size_t told = 0;
  for (int step = 0; step < 200; ++step) {
    server_.Fill(step % 7, absl::StrCat(step, "/"), "v");
    const int64_t before_us = server_.now_us();
    server_.AdvanceBy(1 + (step * 7'919'123) % (3 * kTtlUs));
    for (const auto& event : reader.ReadUpTo(server_.now_us())) {
      EXPECT_GT(ToUs(event.death_time()), before_us);
      EXPECT_LE(ToUs(event.death_time()), server_.now_us());
      ++told;
    }
    // What was not told is still there, and nothing is both.
    const auto now = server_.Describe().statistics();
    EXPECT_EQ(now.expired(), told);
    EXPECT_EQ(ToUs(now.watermark()), server_.now_us());
  }
  EXPECT_EQ(reader.lost(), 0u);
}

TEST_F(VirtualClockTest, ARotationAtAStandingClockComesAfterTheWatermark) {
  WatchReader reader(server_.data(), "default");
  ASSERT_TRUE(reader.Next());
  server_.Put("a", "1");
  server_.Put("b", "2", 60 * server::kMicrosPerSecond);
  server_.AdvanceBy(server::kMicrosPerSecond);
  const int64_t watermark_us = server_.now_us();
  EXPECT_TRUE(reader.ReadUpTo(watermark_us).empty());
  // WatchReader checks that these are after the watermark.
  EXPECT_EQ(server_.Rotate(), 1u);
  EXPECT_EQ(server_.Rotate(), 1u);
  size_t told = 0;
  while (told < 2) {
    const auto message = reader.Next();
    ASSERT_TRUE(message.has_value());
    for (const auto& event : message->events()) {
      EXPECT_EQ(event.cause(), v1::EXPIRY_CAUSE_ROTATED);
      EXPECT_GT(ToUs(event.death_time()), watermark_us);
      ++told;
    }
  }
  server_.AdvanceBy(server::kMicrosPerSecond);
  EXPECT_TRUE(reader.ReadUpTo(server_.now_us()).empty());
}

TEST_F(VirtualClockTest, CallsApplyOneAfterTheOther) {
  constexpr int kThreads = 4;
  constexpr int kSteps = 50;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int step = 0; step < kSteps; ++step) {
        Must(Advance("by { nanos: 1000 }"));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Now(), kStartUs + kThreads * kSteps);
}

TEST_F(VirtualClockTest, WatchersThatComeAndGoDoNotDisturbIt) {
  for (int i = 0; i < 30; ++i) {
    WatchReader reader(server_.data(), "default");
    if (i % 3 != 0) {
      ASSERT_TRUE(reader.Next());
    }
    server_.Put("a", "1");
    server_.AdvanceBy(2 * kTtlUs);
    if (i % 3 == 1) {
      EXPECT_EQ(reader.ReadUpTo(server_.now_us()).size(), 1u);
    }
  }
}

}  // namespace
}  // namespace timecache::test

// How often a page is made, and what those get who ask for it at a time.
#include "server/ops/shared_page.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace timecache::server {
namespace {

using std::chrono::milliseconds;

TEST(SharedPageTest, SaysWhatIsSoWhenItIsAskedFor) {
  int state = 1;
  SharedPage page([&state] { return std::to_string(state); });
  EXPECT_EQ(page.Last(), nullptr);
  EXPECT_EQ(*page.Next(), "1");
  state = 2;
  EXPECT_EQ(*page.Last(), "1");
  EXPECT_EQ(*page.Next(), "2");
  EXPECT_EQ(*page.Last(), "2");
}

TEST(SharedPageTest, AllWhoAskWhileOneIsMadeShareTheNext) {
  std::atomic<int> made = 0;
  absl::Notification begun;
  absl::Notification go_on;
  SharedPage page([&] {
    if (++made == 1) {
      begun.Notify();
      go_on.WaitForNotification();
    }
    return std::to_string(made);
  });
  std::thread first([&page] { EXPECT_EQ(*page.Next(), "1"); });
  begun.WaitForNotification();
  std::atomic<int> asking = 0;
  std::vector<std::thread> others;
  for (int i = 0; i < 8; ++i) {
    others.emplace_back([&] {
      ++asking;
      EXPECT_NE(page.Next(), nullptr);
    });
  }
  while (asking < 8) std::this_thread::yield();
  go_on.Notify();
  first.join();
  for (std::thread& each : others) each.join();
  // One that came after the first was done may have waited for a third.
  EXPECT_GE(made, 2);
  EXPECT_LE(made, 3);
}

TEST(SharedPageTest, ADearPageRestsNineTimesAsLong) {
  EXPECT_EQ(SharedPage::RestAfter(milliseconds(40)), milliseconds(360));
  EXPECT_EQ(SharedPage::RestAfter(milliseconds(0)), milliseconds(0));
  EXPECT_EQ(SharedPage::RestAfter(milliseconds(60'000)), SharedPage::kMaxRest);
}

TEST(SharedPageTest, WhoWaitsThroughARestIsReleasedByTheEnd) {
  using Clock = std::chrono::steady_clock;
  SharedPage page([] {
    // Dear by the clock that it is measured by.
    const auto until = Clock::now() + milliseconds(250);
    while (Clock::now() < until) std::this_thread::yield();
    return std::string("1");
  });
  const auto start = Clock::now();
  EXPECT_NE(page.Next(), nullptr);
  std::atomic<bool> asking = false;
  std::thread waiting([&] {
    asking = true;
    EXPECT_EQ(page.Next(), nullptr);
  });
  while (!asking) std::this_thread::yield();
  page.Stop();
  waiting.join();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(page.Next(), nullptr);
}

}  // namespace
}  // namespace timecache::server

#include "client/examples/ten_lines.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/recipes/recipe_fixture.h"
#include "timecache/status.h"

namespace timecache::test {
namespace {

using examples::AnswerOnce;
using examples::MayCall;
using examples::WhoHasLeft;
using ::testing::ElementsAre;

constexpr absl::Duration kTenLinesWidth = absl::Milliseconds(300);

using TenLinesTest = RecipeTest;

TEST_F(TenLinesTest, CallsAreLimitedInAWindow) {
  constexpr absl::Duration kWindow = absl::Seconds(1);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(MayCall(client_, "alice", 3, kWindow).value(), i < 3);
  }
  EXPECT_TRUE(MayCall(client_, "bob", 3, kWindow).value());
  // Calls that are refused do not make the window longer.
  Pass(kWindow + kTenLinesWidth);
  EXPECT_TRUE(MayCall(client_, "alice", 3, kWindow).value());
}

TEST_F(TenLinesTest, CallsOfManyAreLimitedTogether) {
  std::atomic<int> allowed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Client client = MakeClient();
      for (int call = 0; call < 20; ++call) {
        allowed += MayCall(client, "all", 30, absl::Seconds(1)).value();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allowed, 30);
}

TEST_F(TenLinesTest, ARequestIsWorkedOnOnce) {
  constexpr absl::Duration kWorkTime = absl::Seconds(5);
  constexpr absl::Duration kRemembered = absl::Hours(1);
  int worked = 0;
  const auto ask = [&](const std::string& request) {
    return AnswerOnce(client_, request, kWorkTime, kRemembered,
                      [&] { return absl::StrCat("answer ", ++worked); });
  };
  EXPECT_EQ(ask("1").value(), "answer 1");
  EXPECT_EQ(ask("1").value(), "answer 1");
  EXPECT_EQ(ask("2").value(), "answer 2");
  Pass(kRemembered - absl::Seconds(1));
  EXPECT_EQ(ask("1").value(), "answer 1");
  Pass(absl::Seconds(1) + kTenLinesWidth);
  EXPECT_EQ(ask("1").value(), "answer 3");
  // Meanwhile it comes again.
  const auto twice = AnswerOnce(client_, "3", kWorkTime, kRemembered, [&] {
    EXPECT_TRUE(absl::IsAborted(ask("3").status()));
    return std::string();
  });
  EXPECT_EQ(twice.value(), "");
  EXPECT_EQ(ask("3").value(), "") << "an empty answer is one";
  EXPECT_EQ(worked, 3);
}

TEST_F(TenLinesTest, WorkThatTakesTooLongSaysSo) {
  const auto late =
      AnswerOnce(client_, "1", absl::Seconds(5), absl::Hours(1), [&] {
        Pass(absl::Seconds(5) + kTenLinesWidth);
        return std::string("late");
      });
  EXPECT_TRUE(HasReason(late.status(), ErrorReason::kKeyNotFound))
      << late.status();
}

TEST_F(TenLinesTest, WhoIsHereAndWhoHasLeft) {
  const Table present(client_, "present", {.ttl = absl::Seconds(10)});
  const auto watcher = Watch({.key_prefix = present.key_prefix()});
  EXPECT_TRUE(present.Add("alice").value());
  EXPECT_TRUE(present.Add("bob").value());
  Pass(absl::Seconds(9));
  EXPECT_FALSE(present.Add("alice").value());
  Pass(absl::Seconds(1) + kTenLinesWidth);
  EXPECT_THAT(present.List().value(), ElementsAre("alice"));
  std::vector<std::string> left;
  while (left.empty()) left = WhoHasLeft(present, *watcher).value();
  EXPECT_THAT(left, ElementsAre("bob"));
}

}  // namespace
}  // namespace timecache::test

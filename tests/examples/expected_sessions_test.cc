#include "client/examples/expected_sessions.h"

#include "gtest/gtest.h"

namespace timecache::sessionize {
namespace {

absl::Time At(int64_t unix_s) { return absl::FromUnixSeconds(unix_s); }

// Of requests of one visitor at these times, with a width of 18 s.
std::vector<EndedSession> Ends(const std::vector<int64_t>& times_s) {
  ExpectedSessions expected(absl::Minutes(30), 101);
  for (const int64_t time_s : times_s) expected.Add({"v", At(time_s), 1});
  return expected.Finish();
}

TEST(ExpectedSessions, EndsAtTheNextBoundaryAfterItsTtl) {
  EXPECT_EQ(Ends({1})[0].ended_at, At(1818));
  EXPECT_EQ(Ends({18})[0].ended_at, At(1818));
  EXPECT_EQ(Ends({19})[0].ended_at, At(1836));
}

TEST(ExpectedSessions, RequestJustBeforeTheEndGoesOnAndAtTheEndBegins) {
  EXPECT_EQ(Ends({1, 1817}).size(), 1u);
  EXPECT_EQ(Ends({1, 1818}).size(), 2u);
}

TEST(ExpectedSessions, LateRequestCountsAtTheClocksTime) {
  const auto ends = Ends({1800, 10});
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(ends[0], (EndedSession{"v", {At(10), At(1800), 2, 2}, At(3600)}));
}

TEST(ExpectedSessions, WidthIsRoundedDownToAMicrosecond) {
  ExpectedSessions expected(absl::Seconds(1), 4);  // 333,333 us.
  expected.Add({"v", At(0), 1});
  EXPECT_EQ(expected.Finish()[0].ended_at,
            absl::UnixEpoch() + absl::Microseconds(4 * 333'333));
}

TEST(ExpectedSessions, AreInOrderOfEndThenVisitor) {
  ExpectedSessions expected(absl::Minutes(30), 101);
  for (const char* visitor : {"c", "a"}) expected.Add({visitor, At(1), 1});
  expected.Add({"b", At(1900), 1});
  expected.Add({"a", At(1900), 1});
  std::string order;
  for (const EndedSession& ended : expected.Finish()) order += ended.visitor;
  EXPECT_EQ(order, "acab");
}

}  // namespace
}  // namespace timecache::sessionize

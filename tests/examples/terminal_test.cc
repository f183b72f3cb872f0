#include "client/examples/terminal.h"

#include "gtest/gtest.h"

namespace timecache::sessionize {
namespace {

TEST(Terminal, CountsAreInGroupsOfThreeDigits) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1'000), "1,000");
  EXPECT_EQ(CountText(123'456), "123,456");
  EXPECT_EQ(CountText(1'234'567), "1,234,567");
}

TEST(Terminal, RateIsRoundedAndZeroWithoutTime) {
  EXPECT_EQ(RatePerSecond(10, absl::Seconds(4)), 3u);
  EXPECT_EQ(RatePerSecond(9, absl::Seconds(4)), 2u);
  EXPECT_EQ(RatePerSecond(10, absl::ZeroDuration()), 0u);
}

TEST(Terminal, ControlCharactersAreShownAsNumbers) {
  EXPECT_EQ(Escape("a \"b\" \\ ä"), "a \"b\" \\ ä");
  EXPECT_EQ(Escape("\x1b[2J\n\x7f"), "\\x1b[2J\\x0a\\x7f");
}

}  // namespace
}  // namespace timecache::sessionize

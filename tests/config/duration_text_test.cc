#include "server/config/duration_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace timecache {
namespace {

using ::testing::HasSubstr;

// "seconds.nanos", or the error's text.
std::string Parsed(absl::string_view text) {
  const auto duration = ParseDurationText(text);
  if (!duration.ok()) return std::string(duration.status().message());
  return std::to_string(duration->seconds()) + "." +
         std::to_string(duration->nanos());
}

TEST(DurationTextTest, ReadsEveryUnit) {
  EXPECT_EQ(Parsed("1ns"), "0.1");
  EXPECT_EQ(Parsed("100us"), "0.100000");
  EXPECT_EQ(Parsed("500ms"), "0.500000000");
  EXPECT_EQ(Parsed("30s"), "30.0");
  EXPECT_EQ(Parsed("5m"), "300.0");
  EXPECT_EQ(Parsed("24h"), "86400.0");
  EXPECT_EQ(Parsed("7d"), "604800.0");
}

TEST(DurationTextTest, ReadsSeveralUnitsAndFractions) {
  EXPECT_EQ(Parsed("1h30m"), "5400.0");
  EXPECT_EQ(Parsed("1d12h"), "129600.0");
  EXPECT_EQ(Parsed("1.5s"), "1.500000000");
}

TEST(DurationTextTest, ZeroNeedsNoUnit) {
  EXPECT_EQ(Parsed("0"), "0.0");
  EXPECT_EQ(Parsed("0s"), "0.0");
  EXPECT_EQ(Parsed("0d"), "0.0");
}

TEST(DurationTextTest, RefusesWhatIsNoDuration) {
  for (const char* text :
       {"", "30", "s", "d", "30 s", "30sec", "30S", "inf", "-inf", "nan",
        "1.5d", "1h2d", "-1d", "+1d", "1dd", "99999999999d", "1d1", "abc"}) {
    EXPECT_THAT(Parsed(text), HasSubstr("expected a duration with a unit"))
        << text;
  }
}

TEST(DurationTextTest, RefusesNegativeOnes) {
  EXPECT_EQ(Parsed("-1s"), "must not be negative, got \"-1s\"");
  EXPECT_EQ(Parsed("2d-1h"), "must not be negative, got \"2d-1h\"");
}

TEST(DurationTextTest, TakesTenThousandYearsAndNoMore) {
  EXPECT_EQ(Parsed("315576000000s"), "315576000000.0");
  EXPECT_THAT(Parsed("315576000001s"), HasSubstr("longer than 10,000 years"));
  EXPECT_THAT(Parsed("4294967295d"), HasSubstr("longer than 10,000 years"));
}

TEST(DurationTextTest, WritesTheLargestUnitThatLeavesNoRest) {
  for (const char* text :
       {"0s", "1ns", "100us", "1500ms", "30s", "5m", "36h", "7d",
        "1000000001ns", "9223372036s1ns", "315575999999s999999999ns"}) {
    const auto duration = ParseDurationText(text);
    ASSERT_TRUE(duration.ok()) << duration.status();
    EXPECT_EQ(FormatDurationText(*duration), text);
  }
  EXPECT_EQ(FormatDurationText(*ParseDurationText("1h30m")), "90m");
  EXPECT_EQ(FormatDurationText(*ParseDurationText("24h")), "1d");
}

}  // namespace
}  // namespace timecache

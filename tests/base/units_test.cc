#include "server/base/units.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache {
namespace {

using ::testing::HasSubstr;

absl::Duration Parsed(absl::string_view text) {
  const auto duration = ParseDuration(text);
  EXPECT_TRUE(duration.ok()) << duration.status();
  return duration.value_or(-absl::InfiniteDuration());
}

std::string Refusal(absl::string_view text) {
  return std::string(ParseDuration(text).status().message());
}

TEST(DurationTextTest, ReadsEveryUnit) {
  EXPECT_EQ(Parsed("1ns"), absl::Nanoseconds(1));
  EXPECT_EQ(Parsed("100us"), absl::Microseconds(100));
  EXPECT_EQ(Parsed("500ms"), absl::Milliseconds(500));
  EXPECT_EQ(Parsed("30s"), absl::Seconds(30));
  EXPECT_EQ(Parsed("5m"), absl::Minutes(5));
  EXPECT_EQ(Parsed("24h"), absl::Hours(24));
  EXPECT_EQ(Parsed("7d"), absl::Hours(168));
}

TEST(DurationTextTest, ReadsSeveralUnitsAndFractions) {
  EXPECT_EQ(Parsed("1h30m"), absl::Minutes(90));
  EXPECT_EQ(Parsed("1d12h"), absl::Hours(36));
  EXPECT_EQ(Parsed("12h1d"), absl::Hours(36));
  EXPECT_EQ(Parsed("1.5s"), absl::Milliseconds(1500));
  EXPECT_EQ(Parsed("1.5d"), absl::Hours(36));
  EXPECT_EQ(Parsed("1.1s"), absl::Milliseconds(1100));
}

TEST(DurationTextTest, ZeroNeedsNoUnit) {
  for (const char* text : {"0", "0s", "0d"}) {
    EXPECT_EQ(Parsed(text), absl::ZeroDuration());
  }
}

TEST(DurationTextTest, RefusesWhatIsNoDuration) {
  for (const char* text :
       {"",     "30",  "s",    "d",    "30 s",  "30sec", "30S",  "inf",
        "nan",  "+1d", "1dd",  "1d1",  "abc",   "1w",    "s1",   "1..5s",
        "1e3s", "1s ", "infs", "nans", "1h-1m", "1d+2h", "0x1s", "1s\n"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("is not a duration")) << text;
  }
  EXPECT_EQ(Refusal("soon"),
            "\"soon\" is not a duration: write 500ms, 30s, 5m, 24h or 7d");
}

TEST(DurationTextTest, RefusesNegativeOnes) {
  EXPECT_EQ(Refusal("-1s"), "\"-1s\" is negative");
  EXPECT_EQ(Refusal("-inf"), "\"-inf\" is negative");
}

TEST(DurationTextTest, TakesTenThousandYearsAndNoMore) {
  EXPECT_EQ(Parsed("315576000000s"), absl::Seconds(315'576'000'000));
  for (const char* text : {"315576000001s", "4294967295d", "99999999999999d",
                           "315576000000s1ns"}) {
    EXPECT_THAT(Refusal(text), HasSubstr("longer than 10,000 years")) << text;
  }
}

TEST(DurationTextTest, WhatIsWrittenIsReadBack) {
  for (const char* text :
       {"0s", "1ns", "100us", "1.5s", "30s", "5m", "1h30m", "25h", "7d",
        "1.000000001s", "87659999h59m59.999999999s"}) {
    EXPECT_EQ(DurationText(Parsed(text)), text);
  }
  EXPECT_EQ(DurationText(Parsed("90m")), "1h30m");
  EXPECT_EQ(DurationText(Parsed("24h")), "1d");
}

uint64_t Bytes(absl::string_view text) {
  const auto bytes = ParseSize(text);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.value_or(0);
}

TEST(SizeTextTest, ReadsEveryUnit) {
  EXPECT_EQ(Bytes("0"), 0u);
  EXPECT_EQ(Bytes("17"), 17u);
  EXPECT_EQ(Bytes("512B"), 512u);
  EXPECT_EQ(Bytes("10kB"), 10'000u);
  EXPECT_EQ(Bytes("64KiB"), 64u << 10);
  EXPECT_EQ(Bytes("64 MiB"), 64u << 20);
  EXPECT_EQ(Bytes("64MB"), 64'000'000u);
  EXPECT_EQ(Bytes("3GiB"), uint64_t{3} << 30);
  EXPECT_EQ(Bytes("2TiB"), uint64_t{2} << 40);
  EXPECT_EQ(Bytes("1.5KiB"), 1536u);
  EXPECT_EQ(Bytes("18446744073709551615"), UINT64_MAX);
}

TEST(SizeTextTest, RefusesWhatIsNoSize) {
  for (const char* text : {"", "MiB", "-1", "-1MiB", "1.5", "64mib", "1e3",
                           "+1", "1 ", "1..5KiB", "inf", "64MiBs"}) {
    EXPECT_THAT(std::string(ParseSize(text).status().message()),
                HasSubstr("is not a size: write a number of bytes, or 64MiB"))
        << text;
  }
}

TEST(SizeTextTest, RefusesWhat64BitsDoNotHold) {
  for (const char* text :
       {"16777216TiB", "16777216.5TiB", "18446744073709552kB"}) {
    EXPECT_THAT(std::string(ParseSize(text).status().message()),
                HasSubstr("is more than 64 bits hold"))
        << text;
  }
}

TEST(SizeTextTest, WritesFourDigits) {
  EXPECT_EQ(SizeText(17), "17 B");
  EXPECT_EQ(SizeText(1536), "1.5 KiB");
  EXPECT_EQ(SizeText(64 << 20), "64 MiB");
  EXPECT_EQ(SizeText(123'456'789), "117.7 MiB");
  EXPECT_EQ(SizeText(888'888'288'888'882'888), "789.5 PiB");
  EXPECT_EQ(SizeText(UINT64_MAX), "16 EiB");
}

}  // namespace
}  // namespace timecache

#include "client/examples/log_line.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace timecache::sessionize {
namespace {

using ::testing::HasSubstr;

constexpr char kCommon[] =
    R"(192.0.2.1 - frank [17/May/2015:10:05:03 +0000] "GET /a HTTP/1.1" 200 2326)";

absl::Time Time(const char* text) {
  absl::Time time;
  std::string error;
  EXPECT_TRUE(absl::ParseTime(absl::RFC3339_full, text, &time, &error))
      << error;
  return time;
}

// A line at this time.
std::string At(const std::string& time) {
  return absl::StrCat("h - - [", time, "] \"GET / HTTP/1.1\" 200 1");
}

std::string Sized(const std::string& bytes) {
  return absl::StrCat(R"(h - - [17/May/2015:10:05:03 +0000] "GET /" 200 )",
                      bytes);
}

void ExpectTime(const std::string& in_log, const char* expected) {
  const auto line = ParseLogLine(At(in_log));
  ASSERT_TRUE(line.ok()) << in_log << ": " << line.status();
  EXPECT_EQ(line->time, Time(expected)) << in_log;
}

void ExpectMalformed(const std::string& text, const std::string& why) {
  const auto line = ParseLogLine(text);
  ASSERT_EQ(line.status().code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(line.status().message()), HasSubstr(why)) << text;
}

TEST(LogLine, CommonFormat) {
  const auto line = ParseLogLine(kCommon);
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->visitor, "192.0.2.1");
  EXPECT_EQ(line->time, Time("2015-05-17T10:05:03Z"));
  EXPECT_EQ(line->bytes, 2326u);
}

TEST(LogLine, WhatIsReadOfALine) {
  const std::string rest = R"( - - [17/May/2015:10:05:03 +0000] "GET /" 200 5)";
  const struct {
    std::string line;
    const char* visitor;
    uint64_t bytes;
  } kCases[] = {
      {absl::StrCat(
           kCommon,
           R"( "http://a.example/?q=\"x\"" "Agent \"7\" [beta] 200 9")"),
       "192.0.2.1", 2326},
      // What is added to the end is not looked at.
      {absl::StrCat(kCommon, " \"-\" \"cut off"), "192.0.2.1", 2326},
      {absl::StrCat(kCommon, " 0.012 upstream=b"), "192.0.2.1", 2326},
      {absl::StrCat(kCommon, "\n"), "192.0.2.1", 2326},
      {absl::StrCat(kCommon, "\r\n"), "192.0.2.1", 2326},
      {absl::StrCat(kCommon, "\r"), "192.0.2.1", 2326},
      {R"(h - - [17/May/2015:10:05:03 +0000] "GET /\"a\\\" 404 7 HTTP/1.1" 200 5)",
       "h", 5},
      {R"(h - Jane Q. Doe [17/May/2015:10:05:03 +0000] "GET /" 200 1)", "h", 1},
      {"2001:db8::7" + rest, "2001:db8::7", 5},
      {"::ffff:192.0.2.1" + rest, "::ffff:192.0.2.1", 5},
      {"fe80::1%eth0" + rest, "fe80::1%eth0", 5},
      {"crawl-66-249.bot.example" + rest, "crawl-66-249.bot.example", 5},
  };
  for (const auto& c : kCases) {
    const auto line = ParseLogLine(c.line);
    ASSERT_TRUE(line.ok()) << c.line << ": " << line.status();
    EXPECT_EQ(line->visitor, c.visitor) << c.line;
    EXPECT_EQ(line->bytes, c.bytes) << c.line;
  }
  ExpectMalformed(R"(h - - [17/May/2015:10:05:03 +0000] "GET /a\" 200 5)",
                  "REQUEST");
}

TEST(LogLine, VisitorOfTheGreatestLength) {
  const std::string rest = R"( - - [17/May/2015:10:05:03 +0000] "GET /" 200 1)";
  const std::string longest(kMaxVisitorBytes, 'v');
  EXPECT_TRUE(ParseLogLine(longest + rest).ok());
  ExpectMalformed(longest + "v" + rest, "address");
  ExpectMalformed(rest, "address");
  ExpectMalformed("caf\xc3\xa9" + rest, "address");
}

TEST(LogLine, MissingFields) {
  const std::string rest = R"([17/May/2015:10:05:03 +0000] "GET /" 200 1)";
  ExpectMalformed("h " + rest, "HOST IDENT USER");
  ExpectMalformed("h - " + rest, "HOST IDENT USER");
  EXPECT_TRUE(ParseLogLine("h - - " + rest).ok());
  ExpectMalformed("", "empty");
  ExpectMalformed("\r\n", "empty");
  ExpectMalformed("hello", "HOST IDENT USER");
}

TEST(LogLine, EveryTruncationIsMalformedUntilTheBytesBegin) {
  const std::string text = kCommon;
  const size_t bytes = text.rfind(' ') + 1;
  for (size_t length = 0; length <= bytes; ++length) {
    EXPECT_FALSE(ParseLogLine(text.substr(0, length)).ok()) << length;
  }
  EXPECT_TRUE(ParseLogLine(text.substr(0, bytes + 1)).ok());
}

TEST(LogLine, TimeZones) {
  ExpectTime("17/May/2015:10:05:03 +0200", "2015-05-17T08:05:03Z");
  ExpectTime("17/May/2015:23:59:59 -0330", "2015-05-18T03:29:59Z");
  ExpectTime("01/Jan/2016:00:00:00 +1400", "2015-12-31T10:00:00Z");
  ExpectTime("17/May/2015:10:05:03 -0000", "2015-05-17T10:05:03Z");
}

TEST(LogLine, LeapDaysAndSeconds) {
  ExpectTime("29/Feb/2016:12:00:00 +0000", "2016-02-29T12:00:00Z");
  ExpectTime("29/Feb/2000:12:00:00 +0000", "2000-02-29T12:00:00Z");
  ExpectMalformed(At("29/Feb/2015:12:00:00 +0000"), "time");
  ExpectMalformed(At("29/Feb/2100:12:00:00 +0000"), "time");
  ExpectTime("30/Jun/2015:23:59:60 +0000", "2015-07-01T00:00:00Z");
  ExpectMalformed(At("30/Jun/2015:23:59:61 +0000"), "time");
}

TEST(LogLine, YearsAtTheirEnds) {
  ExpectTime("01/Jan/1970:00:00:00 +0000", "1970-01-01T00:00:00Z");
  ExpectTime("31/Dec/9900:23:59:59 +0000", "9900-12-31T23:59:59Z");
  ExpectMalformed(At("31/Dec/1969:23:59:59 +0000"), "time");
  ExpectMalformed(At("01/Jan/9901:00:00:00 +0000"), "time");
}

TEST(LogLine, BadTimes) {
  for (const char* time : {"",
                           "-",
                           "17/May/2015",
                           "17/May/2015:10:05:03",
                           "17/may/2015:10:05:03 +0000",
                           "17/Mai/2015:10:05:03 +0000",
                           "00/May/2015:10:05:03 +0000",
                           "31/Apr/2015:10:05:03 +0000",
                           "32/May/2015:10:05:03 +0000",
                           "7/May/2015:10:05:03 +0000",
                           "17/May/15:10:05:03 +0000",
                           "17/May/2015:24:00:00 +0000",
                           "17/May/2015:10:60:03 +0000",
                           "17/May/2015:10:05:03 0000",
                           "17/May/2015:10:05:03 +2400",
                           "17/May/2015:10:05:03 +0060",
                           "17/May/2015:10:05:03 +000",
                           "17/May/2015:10:05:03 +00000",
                           "17/May/2015 10:05:03 +0000",
                           "+7/May/2015:10:05:03 +0000",
                           "17/May/2015:10:05:-3 +0000"}) {
    ExpectMalformed(At(time), "time");
  }
}

TEST(LogLine, Bytes) {
  EXPECT_EQ(ParseLogLine(Sized("-"))->bytes, 0u);
  EXPECT_EQ(ParseLogLine(Sized("0"))->bytes, 0u);
  EXPECT_EQ(ParseLogLine(Sized("18446744073709551615"))->bytes,
            std::numeric_limits<uint64_t>::max());
  for (const char* bytes :
       {"", "18446744073709551616", "99999999999999999999999", "-1", "+1",
        "1.5", "1k", "0x10", "--", " 1"}) {
    ExpectMalformed(Sized(bytes), "bytes");
  }
}

TEST(LogLine, StatusHasThreeDigits) {
  for (const char* status : {"20", "2000", "2x0", "-", ""}) {
    ExpectMalformed(
        absl::StrCat(R"(h - - [17/May/2015:10:05:03 +0000] "GET /" )", status,
                     " 1"),
        "status");
  }
}

}  // namespace
}  // namespace timecache::sessionize

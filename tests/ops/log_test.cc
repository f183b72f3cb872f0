#include "server/ops/log.h"

#include <algorithm>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/main/config/config.h"

namespace timecache::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

const absl::Time kTime = absl::FromUnixMillis(1767225600007);  // 2026-01-01

std::string Text(std::string_view event, LogFields fields) {
  return FormatLogLine(LogFormat::kText, kTime, LogLevel::kInfo, event, fields);
}

std::string Json(std::string_view event, LogFields fields) {
  return FormatLogLine(LogFormat::kJson, kTime, LogLevel::kInfo, event, fields);
}

TEST(LogTest, TextLineHasTimeLevelEventAndFields) {
  EXPECT_EQ(
      Text("server_started",
           {{"address", "127.0.0.1:7171"}, {"namespaces", 3}}),
      "2026-01-01T00:00:00.007Z info  server_started address=127.0.0.1:7171 "
      "namespaces=3");
  EXPECT_EQ(FormatLogLine(LogFormat::kText, kTime, LogLevel::kError, "e", {}),
            "2026-01-01T00:00:00.007Z error e");
}

TEST(LogTest, TextQuotesValuesThatNeedIt) {
  const auto value = [](std::string_view text) {
    return Text("e", {{"k", text}})
        .substr(std::string("2026-01-01T00:00:00.007Z info  e k=").size());
  };
  EXPECT_EQ(value("plain-1.5/x"), "plain-1.5/x");
  EXPECT_EQ(value(""), R"("")");
  EXPECT_EQ(value("two words"), R"("two words")");
  EXPECT_EQ(value("a=b"), R"("a=b")");
  EXPECT_EQ(value("say \"hi\""), R"("say \"hi\"")");
  EXPECT_EQ(value("back\\slash"), R"("back\\slash")");
  EXPECT_EQ(value("line\nbreak"), R"("line\nbreak")");
  EXPECT_EQ(value("\x1b[31m"), R"("\u001b[31m")");
  EXPECT_EQ(value("\u00e9"), R"("\u00e9")");
}

TEST(LogTest, JsonLineKeepsOrderAndTypes) {
  EXPECT_EQ(
      Json("e", {{"s", "a b"},
                 {"i", -1},
                 {"u", std::numeric_limits<uint64_t>::max()},
                 {"d", 0.5},
                 {"b", true},
                 {"string", std::string("x")}}),
      R"({"time":"2026-01-01T00:00:00.007Z","level":"info","event":"e",)"
      R"("s":"a b","i":-1,"u":18446744073709551615,"d":0.5,"b":true,"string":"x"})");
}

TEST(LogTest, AnObjectStaysOne) {
  const LogJson options{R"({"ttl":"30s","max_entries":7})"};
  EXPECT_EQ(Json("e", {{"options", options}}),
            R"({"time":"2026-01-01T00:00:00.007Z","level":"info","event":"e",)"
            R"("options":{"ttl":"30s","max_entries":7}})");
  EXPECT_THAT(Text("e", {{"options", options}, {"n", 1}}),
              EndsWith(R"( options={"ttl":"30s","max_entries":7} n=1)"));
  // What is none is a string, and a line stays a line.
  EXPECT_THAT(Json("e", {{"options", LogJson{"ttl: 30\n"}}}),
              EndsWith(R"("options":"ttl: 30\n"})"));
}

TEST(LogTest, AnyBytesMakeOneLineOfPrintableAscii) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes.push_back(static_cast<char>(c));
  for (const std::string& line :
       {Text("e", {{"k", bytes}}), Json("e", {{"k", bytes}}),
        Text("e", {{"k", "\xff"}})}) {
    EXPECT_TRUE(std::all_of(line.begin(), line.end(), [](char c) {
      return c >= ' ' && c <= '~';
    })) << line;
  }
  EXPECT_TRUE(nlohmann::json::accept(Json("e", {{"k", bytes}})));
}

TEST(LogTest, LongStringsAreCut) {
  const std::string fits(kMaxLogValueBytes, 'x');
  EXPECT_THAT(Text("e", {{"k", fits}}), EndsWith("k=" + fits));
  EXPECT_THAT(Text("e", {{"k", fits + "x"}}), EndsWith("k=" + fits + "..."));
}

TEST(LogTest, WritesToStandardErrorFromTheLeastLevelUp) {
  config::v1::LogConfig config;
  config.set_level(config::v1::LOG_LEVEL_WARNING);
  config.set_format(config::v1::LOG_FORMAT_JSON);
  SetLogging(config);
  CaptureStderr();
  Log(LogLevel::kInfo, "too_little");
  Log(LogLevel::kWarning, "enough", {{"n", 1}});
  const std::string json_lines = GetCapturedStderr();
  EXPECT_FALSE(absl::StrContains(json_lines, "too_little"));
  EXPECT_THAT(json_lines,
              HasSubstr(R"("level":"warn","event":"enough","n":1})"));
  EXPECT_THAT(json_lines, EndsWith("}\n"));

  SetLogging(LogLevel::kInfo, LogFormat::kText);
  CaptureStderr();
  Log(LogLevel::kInfo, "braces", {{"k", "{}{0}%s"}});
  EXPECT_THAT(GetCapturedStderr(), EndsWith(" info  braces k={}{0}%s\n"));
}

TEST(LogTest, LinesOfSeveralThreadsDoNotMix) {
  constexpr int kThreads = 4;
  constexpr int kLines = 200;
  SetLogging(LogLevel::kInfo, LogFormat::kText);
  CaptureStderr();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < kLines; ++i) {
        Log(LogLevel::kInfo, "event", {{"key", "value"}});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string captured = GetCapturedStderr();
  const std::vector<std::string> lines =
      absl::StrSplit(captured, '\n', absl::SkipEmpty());
  EXPECT_EQ(lines.size(), kThreads * kLines);
  for (const std::string& line : lines) {
    EXPECT_THAT(line, EndsWith("Z info  event key=value"));
  }
}

}  // namespace
}  // namespace timecache::server

// timecachectl's parts: bytes, units, the lines of `load`, what is printed.
#include <cstdio>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/cli/dump/dump_binary.h"
#include "client/cli/dump/load_line.h"
#include "client/cli/ui/bytes.h"
#include "client/cli/ui/line_reader.h"
#include "client/cli/ui/output.h"
#include "client/cli/ui/progress.h"
#include "client/cli/ui/units.h"
#include "gtest/gtest.h"

namespace timecache::cli {
namespace {

using namespace std::string_literals;

TEST(BytesTest, EscapeIsOneLineAndUnambiguous) {
  EXPECT_EQ(Escape("plain \u20ac"), "plain \u20ac");
  EXPECT_EQ(Escape("a\0b\n\t\x7f"s), "a\\x00b\\x0a\\x09\\x7f");
  EXPECT_EQ(Escape("\\x00"), "\\\\x00");
  EXPECT_EQ(Escape("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(Escape("\u009b31m"), "\\xc2\\x9b31m");  // A terminal's CSI.
}

TEST(BytesTest, UnescapeIsTheInverseOfEscape) {
  std::mt19937 random(1);
  // Bytes that mean something to it, and any other.
  const std::string special = "\\x0Af\t\n\r\xc3\xa4\xff{"s + '\0';
  for (int i = 0; i < 10'000; ++i) {
    std::string bytes(random() % 12, '\0');
    for (char& byte : bytes) {
      byte = random() % 2 ? special[random() % special.size()]
                          : static_cast<char>(random());
    }
    const std::string text = Escape(bytes);
    EXPECT_EQ(text.find_first_of("\t\n\r"s + '\0'), text.npos);
    ASSERT_EQ(Unescape(text).value_or("refused"), bytes) << text;
  }
  for (const char* wrong :
       {"\\", "a\\", "\\x", "\\x0", "\\xg0", "\\n", "\\\\\\"}) {
    EXPECT_FALSE(Unescape(wrong).ok()) << wrong;
  }
}

TEST(BytesTest, HexAndBase64GoBothWays) {
  const std::string bytes = "\0\xff\x10z"s;
  EXPECT_EQ(Encode(bytes, Encoding::kHex), "00ff107a");
  EXPECT_EQ(Encode(bytes, Encoding::kBase64), "AP8Qeg==");
  EXPECT_EQ(Decode("00FF107a", Encoding::kHex).value(), bytes);
  EXPECT_EQ(Decode("AP8Qeg==", Encoding::kBase64).value(), bytes);
  EXPECT_EQ(Decode("as it is \\x00", Encoding::kText).value(),
            "as it is \\x00");
}

TEST(BytesTest, WhatIsNotOfTheFormIsRefused) {
  EXPECT_FALSE(Decode("0", Encoding::kHex).ok());
  EXPECT_FALSE(Decode("0g", Encoding::kHex).ok());
  EXPECT_FALSE(Decode("!!!!", Encoding::kBase64).ok());
  EXPECT_FALSE(Decode(" ", Encoding::kBase64).ok());
  EXPECT_FALSE(Decode("AP8Q\neg==", Encoding::kBase64).ok());
}

TEST(UnitsTest, Times) {
  EXPECT_EQ(ParseTime("1970-01-01T00:30:00Z").value(),
            absl::FromUnixSeconds(1800));
  EXPECT_EQ(ParseTime("1970-01-01T02:30:00+02:00").value(),
            absl::FromUnixSeconds(1800));
  EXPECT_EQ(ParseTime("1800").value(), absl::FromUnixSeconds(1800));
  EXPECT_EQ(ParseTime("0.5").value(), absl::FromUnixMillis(500));
  EXPECT_FALSE(ParseTime("yesterday").ok());
  EXPECT_EQ(TimeText(absl::FromUnixMicros(1'234'567)),
            "1970-01-01T00:00:01.234Z");
  EXPECT_EQ(ExactTimeText(absl::FromUnixMicros(1'234'567)),
            "1970-01-01T00:00:01.234567Z");
}

TEST(LoadLineTest, FormatIsSeenByTheFirstLine) {
  EXPECT_EQ(GuessFormat("key\t{}"), LoadFormat::kTsv);
  EXPECT_EQ(GuessFormat("  {\"key\":1}"), LoadFormat::kJson);
}

TEST(LoadLineTest, AKeyThatBeginsWithABraceIsNoJson) {
  EXPECT_EQ(GuessFormat("{\t1"), LoadFormat::kTsv);
  EXPECT_EQ(GuessFormat("{}\t{}"), LoadFormat::kTsv);
  EXPECT_EQ(GuessFormat("{\t\"key\": 1}"), LoadFormat::kJson);
}

TEST(LoadLineTest, AKeyOfSpacesIsNoBlankLine) {
  EXPECT_TRUE(IsBlank("", LoadFormat::kTsv));
  EXPECT_TRUE(IsBlank("  \r", LoadFormat::kTsv));
  EXPECT_FALSE(IsBlank(" \t", LoadFormat::kTsv));
  EXPECT_TRUE(IsBlank(" \t", LoadFormat::kJson));
}

TEST(LoadLineTest, Tsv) {
  const auto entry = ParseTsvLine("key\ta\tb ", {});
  ASSERT_TRUE(entry.ok());
  EXPECT_EQ(entry->key, "key");
  EXPECT_EQ(entry->value, "a\tb ");
  EXPECT_FALSE(entry->ttl);
  EXPECT_EQ(ParseTsvLine("key\t", {})->value, "");
  EXPECT_EQ(ParseTsvLine("a\\\\\t\\x00", {})->key, "a\\");
  EXPECT_EQ(ParseTsvLine("a\t\\x00", {})->value, "\0"s);
  EXPECT_EQ(ParseTsvLine("a\t\\x00", {}, true)->value, "\\x00");
  EXPECT_FALSE(ParseTsvLine("key", {}).ok());
  EXPECT_FALSE(ParseTsvLine("\tvalue", {}).ok());
  EXPECT_FALSE(ParseTsvLine("a\t\\n", {}).ok());
}

TEST(LoadLineTest, TsvOfOtherEncodings) {
  const Encodings hex = {Encoding::kHex, Encoding::kHex};
  EXPECT_EQ(ParseTsvLine("00\tff", hex)->value, "\xff");
  EXPECT_FALSE(ParseTsvLine("0\tff", hex).ok());
  EXPECT_FALSE(ParseTsvLine("00\tf", hex).ok());
  EXPECT_EQ(ParseTsvLine("00\tf", {Encoding::kHex, Encoding::kText})->key,
            "\0"s);
}

TEST(LoadLineTest, Json) {
  auto entry = ParseJsonLine(R"({"key":"k","value":"v\u0000","ttl":"30s"})");
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->key, "k");
  EXPECT_EQ(entry->value, "v\0"s);
  EXPECT_EQ(entry->ttl, absl::Seconds(30));
  entry = ParseJsonLine(R"({"key_hex":"ff","value_base64":"AP8="})");
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(entry->key, "\xff");
  EXPECT_EQ(entry->value, "\0\xff"s);
}

TEST(LoadLineTest, MalformedJsonIsRefusedAndSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "not a JSON object"},
      {"[]", "not a JSON object"},
      {"17", "not a JSON object"},
      {R"({"value":"v"})", "no key"},
      {R"({"key":"k"})", "no value"},
      {R"({"key":"","value":"v"})", "key is empty"},
      {R"({"key":1,"value":"v"})", "key is not a string"},
      {R"({"key":"k","key_hex":"6b","value":"v"})", "key is given twice"},
      {R"({"key_hex":"6","value":"v"})",
       "key: not hex: an odd number of digits"},
      {R"({"key":"k","value":"v","tll":"30s"})", "unknown field \"tll\""},
      {R"({"key":"k","value":"v","ttl":30})",
       "ttl is not a string such as \"30s\""},
      {R"({"key":"k","value":"v","ttl":"soon"})",
       "ttl: \"soon\" is not a duration: write 500ms, 30s, 5m, 24h or 7d"},
      {R"({"key":"k","value":"v","ttl":"3s","deadline":"1970-01-01T00:00:00Z"})",
       "ttl and deadline: give one of them"},
      {R"({"key":"k","value":"v","ttl":"3s","own_ttl":"3s"})",
       "ttl and own_ttl: give one of them"},
      {R"({"key":"k","value":"v","own_ttl":null})",
       "own_ttl is not a string such as \"30s\""},
      {R"({"key":"k","value":"v","deadline":17})",
       "deadline is not a string such as \"2025-01-31T12:00:00Z\""},
      {"{\"key\":\"k\",\"value\":\"\xff\"}", "not a JSON object"}};
  for (const auto& [line, why] : cases) {
    EXPECT_EQ(ParseJsonLine(line).status().message(), why) << line;
  }
}

TEST(LoadLineTest, WhatScanPrintsCanBeLoaded) {
  const Entry entry = {.key = "\xff",
                       .value = "v",
                       .version = 7,
                       .put_time = absl::UnixEpoch(),
                       .deadline = absl::UnixEpoch(),
                       .create_time = absl::UnixEpoch(),
                       .own_ttl = absl::Microseconds(1'000'001),
                       .traceparent = "00-1-2-01"};
  for (const Encoding encoding :
       {Encoding::kText, Encoding::kHex, Encoding::kBase64}) {
    const auto loaded =
        ParseJsonLine(ToJson(entry, {encoding, encoding}).dump());
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->key, entry.key);
    EXPECT_EQ(loaded->value, entry.value);
    EXPECT_EQ(loaded->deadline, entry.deadline);
    EXPECT_EQ(loaded->own_ttl, entry.own_ttl);
    EXPECT_EQ(loaded->traceparent, entry.traceparent);
  }
}

TEST(DumpBinaryTest, AnEntryIsReadAsItWasWritten) {
  const GatheredParts parts = {.parts = {{.name = "a", .value = "1"}},
                               .expected_parts = 2};
  for (const auto& own_ttl :
       {std::optional<absl::Duration>(), std::optional(absl::Microseconds(7)),
        std::optional(absl::Hours(24 * 3650))}) {
    for (const bool gathers : {false, true}) {
      Entry entry;
      entry.key = "k\xff";
      entry.deadline = absl::FromUnixMicros(77);
      entry.own_ttl = own_ttl;
      entry.traceparent = gathers ? "00-1-2-01" : "";
      if (gathers) {
        entry.parts = parts;
      } else {
        entry.value = "v";
      }
      const std::string frame = BinaryEntry(entry);
      const auto read = ParseFrame(frame.substr(kFrameHeadBytes));
      ASSERT_TRUE(read.ok()) << read.status();
      const LoadEntry loaded = std::get<LoadEntry>(*read);
      EXPECT_EQ(loaded.key, entry.key);
      EXPECT_EQ(loaded.value, entry.value);
      EXPECT_EQ(loaded.deadline, entry.deadline);
      EXPECT_EQ(loaded.own_ttl, own_ttl);
      EXPECT_EQ(loaded.traceparent, entry.traceparent);
      EXPECT_EQ(loaded.ttl, std::nullopt);
      EXPECT_EQ(loaded.parts.has_value(), gathers);
    }
  }
}

TEST(OutputTest, BytesInJsonAreNeverAmbiguous) {
  Json object;
  SetBytes(object, "a", "\u20ac", Encoding::kText);
  SetBytes(object, "b", "\xff", Encoding::kText);
  SetBytes(object, "c", "\xff", Encoding::kHex);
  SetBytes(object, "d", "x", Encoding::kBase64);
  EXPECT_EQ(object.dump(),
            "{\"a\":\"\u20ac\",\"b_base64\":\"/w==\",\"c_hex\":\"ff\","
            "\"d_base64\":\"eA==\"}");
}

std::unique_ptr<std::FILE, int (*)(std::FILE*)> FileWith(
    const std::string& bytes) {
  std::FILE* file = std::tmpfile();
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::rewind(file);
  return {file, std::fclose};
}

TEST(LineReaderTest, LinesWithAndWithoutEnd) {
  const std::string long_line =
      absl::StrCat("three\0"s, std::string(200'000, 'x'));
  const auto file = FileWith(absl::StrCat("one\n\n", long_line));
  LineReader reader(fileno(file.get()));
  std::string line;
  ASSERT_EQ(reader.Next(line), LineReader::Result::kLine);
  EXPECT_EQ(line, "one");
  EXPECT_EQ(reader.bytes_read(), 4u);
  ASSERT_EQ(reader.Next(line), LineReader::Result::kLine);
  EXPECT_EQ(line, "");
  ASSERT_EQ(reader.Next(line), LineReader::Result::kLine);
  EXPECT_EQ(line, long_line);
  EXPECT_EQ(reader.Next(line), LineReader::Result::kEnd);
}

TEST(LineReaderTest, TooLongALineIsSkippedWhole) {
  const auto file = FileWith("12345\n123456\n1\n");
  LineReader reader(fileno(file.get()), 5);
  std::string line;
  EXPECT_EQ(reader.Next(line), LineReader::Result::kLine);
  EXPECT_EQ(reader.Next(line), LineReader::Result::kTooLong);
  ASSERT_EQ(reader.Next(line), LineReader::Result::kLine);
  EXPECT_EQ(line, "1");
  EXPECT_EQ(reader.Next(line), LineReader::Result::kEnd);
}

TEST(ProgressTest, Renders) {
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1'234'567), "1,234,567");
  EXPECT_EQ(RenderProgress({.done = 2000,
                            .bytes_read = 50,
                            .bytes_all = 100,
                            .elapsed = absl::Milliseconds(500)}),
            "[===============>              ]  50%  2,000 entries  4,000/s");
  EXPECT_EQ(RenderProgress({.done = 3, .elapsed = absl::ZeroDuration()}),
            "3 entries  0/s");
}

}  // namespace
}  // namespace timecache::cli

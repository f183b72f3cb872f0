#include "server/api/yaml_to_proto.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.pb.h"
#include "gtest/gtest.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// What reading `yaml` as a configuration is refused with; empty if it is taken.
std::string YamlRefusal(absl::string_view yaml) {
  config::v1::ServerConfig config;
  return std::string(YamlToProto(yaml, "t.yaml", &config).message());
}

template <typename M>
M Read(absl::string_view yaml) {
  M message;
  const absl::Status status = YamlToProto(yaml, "t.yaml", &message);
  EXPECT_TRUE(status.ok()) << status;
  return message;
}

TEST(YamlToProtoTest, FillsNestedAndRepeatedMessages) {
  const auto config = Read<config::v1::ServerConfig>(R"(
# A comment.
listeners:
  - address: 127.0.0.1:7171
  - {address: "unix:/run/t.sock"}
limits:
  max_entries: 1000000
namespaces:
  - name: sessions
    options:
      ttl: 30m
      num_buckets: 31
      sliding: true
      max_bytes: 64MiB
      limit_policy: evict_oldest
grace_period: 1500ms
)");
  ASSERT_EQ(config.listeners_size(), 2);
  EXPECT_EQ(config.listeners(1).address(), "unix:/run/t.sock");
  EXPECT_EQ(config.limits().max_entries(), 1'000'000);
  EXPECT_FALSE(config.limits().has_max_bytes());
  ASSERT_EQ(config.namespaces_size(), 1);
  const v1::NamespaceOptions& options = config.namespaces(0).options();
  EXPECT_EQ(options.ttl().seconds(), 1800);
  EXPECT_EQ(options.num_buckets(), 31);
  EXPECT_TRUE(options.sliding());
  EXPECT_EQ(options.max_bytes(), 64 << 20);
  EXPECT_EQ(options.limit_policy(), v1::LIMIT_POLICY_EVICT_OLDEST);
  EXPECT_EQ(config.grace_period().seconds(), 1);
  EXPECT_EQ(config.grace_period().nanos(), 500'000'000);
}

TEST(YamlToProtoTest, FillsListsOfStrings) {
  const auto file = Read<google::protobuf::FileDescriptorProto>(
      "dependency: [a.proto, 7, 'x: y']");
  EXPECT_THAT(file.dependency(), ElementsAre("a.proto", "7", "x: y"));
}

TEST(YamlToProtoTest, EmptyTextsChangeNothing) {
  for (const char* yaml :
       {"", "\n", "# nothing\n", "---\n", "---\n...\n", "{}", "~"}) {
    EXPECT_EQ(Read<config::v1::ServerConfig>(yaml).ByteSizeLong(), 0) << yaml;
  }
}

TEST(YamlToProtoTest, MessagesAndListsWithoutAValueAreEmpty) {
  EXPECT_EQ(Read<config::v1::ServerConfig>("namespaces:\nlisteners: []\n")
                .ByteSizeLong(),
            0);
  EXPECT_FALSE(
      Read<config::v1::ServerConfig>("limits:\n").limits().has_max_entries());
}

TEST(YamlToProtoTest, UnknownFieldIsRefusedByFileLineAndFullName) {
  EXPECT_EQ(YamlRefusal("listeners:\n"
                        "  - address: 127.0.0.1:0\n"
                        "namespaces:\n"
                        "  - name: a\n"
                        "    options:\n"
                        "      num_buckets: 3\n"
                        "      tll: 30s\n"),
            "t.yaml:7: namespaces[0].options.tll: unknown field; did you mean "
            "\"ttl\"?");
}

TEST(YamlToProtoTest, UnknownFieldUnlikeAllOthersIsToldWhatThereIs) {
  EXPECT_EQ(YamlRefusal("log: {colour: red}"),
            "t.yaml:1: log.colour: unknown field; the fields here are level, "
            "format, slow_call");
}

TEST(YamlToProtoTest, FieldGivenTwiceIsRefused) {
  EXPECT_EQ(YamlRefusal("limits:\n  max_entries: 1\n  max_entries: 1\n"),
            "t.yaml:3: limits.max_entries: given twice: keep one of them");
}

TEST(YamlToProtoTest, WrongShapesAreRefused) {
  EXPECT_EQ(YamlRefusal("- a"),
            "t.yaml:1: expected fields, as \"name: value\"");
  EXPECT_EQ(YamlRefusal("text"),
            "t.yaml:1: expected fields, as \"name: value\"");
  EXPECT_EQ(YamlRefusal("limits: 3"),
            "t.yaml:1: limits: expected fields, as \"name: value\"");
  EXPECT_EQ(YamlRefusal("listeners:\n  address: a:1"),
            "t.yaml:1: listeners: expected a list, as \"- item\"");
  EXPECT_EQ(YamlRefusal("listeners:\n  - address: [a]"),
            "t.yaml:2: listeners[0].address: expected one value");
  EXPECT_EQ(YamlRefusal("grace_period: {seconds: 3}"),
            "t.yaml:1: grace_period: expected one value");
  EXPECT_EQ(YamlRefusal("listeners:\n  -\n"),
            "t.yaml:1: listeners[0]: has no value");
  EXPECT_EQ(YamlRefusal("\ngrace_period:"),
            "t.yaml:2: grace_period: has no value");
  EXPECT_EQ(YamlRefusal("[a]: 1"),
            "t.yaml:1: a field's name must be a plain word");
}

TEST(YamlToProtoTest, ScalarsAreCheckedAgainstTheirType) {
  EXPECT_EQ(YamlRefusal("limits: {max_watchers: many}"),
            "t.yaml:1: limits.max_watchers: expected a whole number from 0 to "
            "4294967295, "
            "got \"many\"");
  for (const char* number : {"-1", "4294967296", "1.0", "1e3", "0x10", "1_000",
                             "''", "' 1'", "+1", "64MiB", "true"}) {
    EXPECT_THAT(
        YamlRefusal(absl::StrCat("limits: {max_watchers: ", number, "}")),
        StartsWith("t.yaml:1: limits.max_watchers: expected a whole number"))
        << number;
  }
  for (const char* boolean : {"yes", "on", "1", "True", "''"}) {
    EXPECT_THAT(
        YamlRefusal(
            absl::StrCat("namespaces: [{options: {sliding: ", boolean, "}}]")),
        StartsWith(
            "t.yaml:1: namespaces[0].options.sliding: expected true or false"))
        << boolean;
  }
  EXPECT_EQ(YamlRefusal("log: {level: WARN}"),
            "t.yaml:1: log.level: expected debug, info, warning, error, got "
            "\"WARN\"");
  EXPECT_THAT(YamlRefusal("log: {level: unspecified}"),
              HasSubstr("expected debug"));
  EXPECT_EQ(YamlRefusal("grace_period: 10"),
            "t.yaml:1: grace_period: \"10\" is not a duration: write 500ms, "
            "30s, 5m, 24h or 7d");
}

TEST(YamlToProtoTest, NumbersReachTheirTypesEndsAndNotBeyond) {
  const auto limits =
      Read<config::v1::ServerLimits>("max_entries: 18446744073709551615");
  EXPECT_EQ(limits.max_entries(), 18446744073709551615u);
  EXPECT_THAT(
      YamlRefusal("limits: {max_entries: 18446744073709551616}"),
      HasSubstr("expected a whole number from 0 to 18446744073709551615"));
}

TEST(YamlToProtoTest, BytesTakeUnits) {
  const auto max_bytes = [](absl::string_view text) {
    return Read<config::v1::ServerLimits>(absl::StrCat("max_bytes: ", text))
        .max_bytes();
  };
  EXPECT_EQ(max_bytes("512"), 512);
  EXPECT_EQ(max_bytes("512B"), 512);
  EXPECT_EQ(max_bytes("64KiB"), 64 << 10);
  EXPECT_EQ(max_bytes("64 MiB"), 64 << 20);
  EXPECT_EQ(max_bytes("3GiB"), uint64_t{3} << 30);
  EXPECT_EQ(max_bytes("2TiB"), uint64_t{2} << 40);
  EXPECT_EQ(max_bytes("64MB"), 64'000'000);
  EXPECT_EQ(max_bytes("1.5KiB"), 1536);
  for (const char* text : {"64mib", "1.5", "-1MiB", "MiB", "16777216TiB"}) {
    EXPECT_THAT(YamlRefusal(absl::StrCat("limits: {max_bytes: ", text, "}")),
                HasSubstr("or with a unit: 512B, 64KiB, 64MiB, 1GiB"))
        << text;
  }
  EXPECT_THAT(YamlRefusal("namespaces: [{options: {max_value_bytes: 4GiB}}]"),
              HasSubstr("from 0 to 4294967295"));
}

TEST(YamlToProtoTest, TextThatIsNoYamlIsRefusedByLine) {
  EXPECT_THAT(YamlRefusal("listeners:\n  - address: \"a"),
              StartsWith("t.yaml:2: "));
  EXPECT_THAT(YamlRefusal("a: b: c"), StartsWith("t.yaml:1: "));
  EXPECT_THAT(YamlRefusal("log: {level: info"), StartsWith("t.yaml:1: "));
  EXPECT_EQ(YamlRefusal("\nnamespaces: [{name: \xff}]"),
            "t.yaml:2: is not UTF-8");
  for (const char* escape : {"\\_", "\\N"}) {
    EXPECT_THAT(
        YamlRefusal(absl::StrCat("namespaces: [{name: \"", escape, "\"}]")),
        HasSubstr("expected UTF-8"));
  }
}

TEST(YamlToProtoTest, ARefusalIsOneLineWhateverTheTextHolds) {
  for (const char* text :
       {"a: \"\\\x01\"", "\"limits\\n\": 1", "\"a\\x1b[31m\": 1",
        "log: {\"le\\nvel\": info}", "log: {level: \"in\\nfo\"}"}) {
    const std::string refusal = YamlRefusal(text);
    EXPECT_THAT(refusal, StartsWith("t.yaml:1: ")) << text;
    EXPECT_TRUE(std::all_of(refusal.begin(), refusal.end(), [](char c) {
      return c >= ' ' && c <= '~';
    })) << refusal;
  }
}

TEST(YamlToProtoTest, AnchorsAliasesTagsAndSecondDocumentsAreRefused) {
  EXPECT_THAT(YamlRefusal("limits: &a {max_entries: 1}"),
              HasSubstr("t.yaml:1: anchors are not supported"));
  EXPECT_THAT(YamlRefusal("limits: *a"), StartsWith("t.yaml:1: "));
  EXPECT_EQ(
      YamlRefusal("\nlimits: {max_entries: !!int 1}"),
      "t.yaml:2: tags are not supported: remove \"tag:yaml.org,2002:int\"");
  EXPECT_EQ(YamlRefusal("limits: {}\n---\nlimits: {}\n"),
            "t.yaml: has more than one document: keep one");
}

TEST(YamlToProtoTest, DeepAndLargeTextsAreRefused) {
  const std::string deep(kMaxYamlDepth + 1, '[');
  EXPECT_THAT(YamlRefusal(deep),
              AllOf(HasSubstr("t.yaml:1: "), HasSubstr("nested")));
  EXPECT_NE(YamlRefusal(std::string(100'000, '[')), "");
  EXPECT_EQ(YamlRefusal(std::string(kMaxYamlBytes, '\n')), "");
  EXPECT_EQ(YamlRefusal(std::string(kMaxYamlBytes + 1, '\n')),
            "t.yaml: larger than 4194304 bytes, the most that is read");
}

TEST(YamlToProtoTest, TellsTheLineOfEveryFieldThatWasSet) {
  config::v1::ServerConfig config;
  FieldLines lines;
  ASSERT_TRUE(YamlToProto("listeners:\n  - address: a:1\nlog:\n  level: info\n",
                          "t.yaml", &config, &lines)
                  .ok());
  EXPECT_THAT(
      lines, UnorderedElementsAre(Pair("listeners", 1), Pair("listeners[0]", 2),
                                  Pair("listeners[0].address", 2),
                                  Pair("log", 3), Pair("log.level", 4)));
}

}  // namespace
}  // namespace timecache::server

// timecachectl as a process, against a stand-in for the server.
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli_fixture.h"

namespace timecache {
namespace {

using namespace std::string_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(CliTest, PutThenGet) {
  ProcessResult result = Run({"put", "key", "value", "--ttl", "90s"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("stored, version "));
  EXPECT_EQ(service_.last_put().ttl().seconds(), 90);
  result = Run({"get", "key"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "value\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(CliTest, MissesExitWithOne) {
  for (const char* command : {"get", "rm", "contains", "touch"}) {
    const ProcessResult result = Run({command, "key"});
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_EQ(Run({command, "key", "--json"}).exit_code, 1) << command;
  }
  EXPECT_EQ(Run({"get", "key"}).err, "timecachectl: not found\n");
}

TEST_F(CliTest, ConditionThatDoesNotHoldExitsWithOne) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  EXPECT_EQ(Run({"put", "key", "new", "--if-absent"}).exit_code, 1);
  EXPECT_EQ(Run({"put", "other", "new", "--if-present"}).exit_code, 1);
  EXPECT_EQ(Run({"rm", "key", "--if-version", "99"}).exit_code, 1);
  EXPECT_EQ(RunJson({"put", "key", "new", "--if-version", "99"}),
            json({{"stored", false}, {"reason", "VERSION_MISMATCH"}}));
  EXPECT_EQ(client_.Get("key").value()->value, "value");
}

TEST_F(CliTest, EveryCommandSpeaksJson) {
  EXPECT_TRUE(RunJson({"put", "key", "value"})["stored"]);
  const json got = RunJson({"get", "key"});
  EXPECT_EQ(got["found"], true);
  EXPECT_EQ(got["value"], "value");
  EXPECT_EQ(got["deadline"], "1970-01-01T00:00:30Z");
  EXPECT_EQ(RunJson({"put", "key", "2", "--previous"})["previous"]["value"],
            "value");
  EXPECT_EQ(RunJson({"contains", "key"}), json({{"contains", true}}));
  EXPECT_EQ(RunJson({"size"}),
            json({{"namespace", "default"}, {"entries", 1}, {"bytes", 4}}));
  EXPECT_TRUE(RunJson({"touch", "key"})["touched"]);
  EXPECT_EQ(RunJson({"scan"})["key"], "key");
  EXPECT_EQ(RunJson({"rm", "key", "--previous"})["previous"]["value"], "2");
  EXPECT_EQ(RunJson({"get", "key"}), json({{"found", false}, {"key", "key"}}));
  EXPECT_EQ(RunJson({"ns", "create", "n"})["name"], "n");
  EXPECT_EQ(RunJson({"ns", "list"})["namespaces"].size(), 2u);
  EXPECT_EQ(RunJson({"ns", "update", "n", "--ttl", "5m"})["options"]["ttl_ms"],
            300'000);
  EXPECT_EQ(RunJson({"ns", "rotate", "n"})["entries"], 0);
  EXPECT_EQ(RunJson({"ns", "delete", "n"})["deleted"], true);
}

TEST_F(CliTest, ValueFromStandardInputIsTakenAsItIs) {
  const std::string value = "a\0b\xff\n"s;
  EXPECT_EQ(Run({"put", "key", "-"}, value).exit_code, 0);
  EXPECT_EQ(service_.last_put().value(), value);
  EXPECT_EQ(Run({"get", "key", "--raw"}).out, value);
  EXPECT_EQ(Run({"get", "6b6579", "--hex"}).out, "610062ff0a\n");
  EXPECT_EQ(RunJson({"get", "key"})["value_base64"], "YQBi/wo=");
}

TEST_F(CliTest, BytesAsHexAndBase64) {
  EXPECT_EQ(Run({"put", "--hex", "00ff", "-"}, "cafe\n").exit_code, 0);
  EXPECT_EQ(service_.last_put().key(), "\0\xff"s);
  EXPECT_EQ(service_.last_put().value(), "\xca\xfe");
  EXPECT_EQ(Run({"get", "AP8=", "--base64"}).out, "yv4=\n");
  EXPECT_EQ(Run({"scan"}).out, "\\x00\\xff\t\\xca\\xfe\n");
  const ProcessResult wrong = Run({"get", "xyz", "--hex"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("key: not hex"));
}

TEST_F(CliTest, ValueThatLooksLikeAFlagGoesBehindTwoDashes) {
  EXPECT_EQ(Run({"put", "key", "--", "-5"}).exit_code, 0);
  EXPECT_EQ(service_.last_put().value(), "-5");
}

TEST_F(CliTest, KeysNamedLikeCommandsAreKeys) {
  EXPECT_EQ(Run({"put", "get", "size"}).exit_code, 0);
  EXPECT_EQ(Run({"get", "get"}).out, "size\n");
  EXPECT_EQ(Run({"ns", "create", "list"}).exit_code, 0);
  EXPECT_EQ(Run({"ns", "get", "list"}).exit_code, 0);
}

TEST_F(CliTest, GlobalFlagsGoBeforeAndAfterTheCommand) {
  ASSERT_TRUE(client_.CreateNamespace("n").ok());
  ASSERT_TRUE(client_.In("n").Put("key", "value").ok());
  EXPECT_EQ(Run({"-n", "n", "get", "key"}).exit_code, 0);
  EXPECT_EQ(Run({"get", "key", "-n", "n"}).exit_code, 0);
  EXPECT_EQ(Run({"get", "-n", "n", "key"}).exit_code, 0);
  EXPECT_EQ(Run({"--json", "ns", "get", "n"}).out,
            Run({"ns", "get", "n", "--json"}).out);
}

TEST_F(CliTest, ANamespacesOperationsAreShown) {
  const std::string text = Run({"ns", "get", "default"}).out;
  EXPECT_THAT(text, HasSubstr("operations "));
  EXPECT_THAT(text, HasSubstr(" puts, "));
  EXPECT_THAT(text, HasSubstr(" rate limited\n"));
  const std::string json = Run({"--json", "ns", "get", "default"}).out;
  for (const char* field : {"puts", "hits", "misses", "rate_limited"}) {
    EXPECT_THAT(json, HasSubstr(absl::StrCat("\"", field, "\":")));
  }
}

TEST_F(CliTest, EnvironmentGivesAddressAndNamespace) {
  ASSERT_TRUE(client_.CreateNamespace("n").ok());
  ASSERT_TRUE(client_.In("n").Put("key", "value").ok());
  setenv("TIMECACHED_ADDRESS", service_.address().c_str(), 1);
  setenv("TIMECACHED_NAMESPACE", "n", 1);
  const ProcessResult result = Process({TIMECACHECTL, "get", "key"}).Wait();
  unsetenv("TIMECACHED_ADDRESS");
  unsetenv("TIMECACHED_NAMESPACE");
  EXPECT_EQ(result.out, "value\n") << result.err;
}

TEST_F(CliTest, WrongUsageExitsWithTwo) {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"fetch"},
      {"get"},
      {"get", "a", "b"},
      {"put", "key", "value", "--ttl", "soon"},
      {"put", "key", "value", "--if-absent", "--if-present"},
      {"put", "key", "value", "--if-version", "-1"},
      {"get", "key", "--hex", "--base64"},
      {"get", "key", "-n", "a", "-n", "b"},
      {"ns"},
      {"ns", "create"},
      {"ns", "create", "n", "--limit-policy", "panic"},
      {"scan", "--limit", "0"},
      {"load", "--in-flight", "0"}};
  for (const auto& arguments : cases) {
    const ProcessResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_NE(result.err, "") << ::testing::PrintToString(arguments);
    EXPECT_EQ(result.out, "") << ::testing::PrintToString(arguments);
  }
}

TEST_F(CliTest, HelpOfEachCommandHasExamples) {
  const std::vector<std::vector<std::string>> commands = {
      {},
      {"put"},
      {"get"},
      {"rm"},
      {"size"},
      {"contains"},
      {"touch"},
      {"scan"},
      {"load"},
      {"bench"},
      {"watch"},
      {"ns", "create"},
      {"ns", "get"},
      {"ns", "list"},
      {"ns", "update"},
      {"ns", "delete"},
      {"ns", "rotate"},
      {"ns", "groups"},
      {"ns", "group-create"},
      {"ns", "group-update"},
      {"ns", "group-delete"}};
  for (std::vector<std::string> arguments : commands) {
    arguments.push_back("--help");
    const ProcessResult result = Run(arguments);
    EXPECT_EQ(result.exit_code, 0) << ::testing::PrintToString(arguments);
    EXPECT_THAT(result.out, HasSubstr("Example"));
    EXPECT_THAT(result.out, HasSubstr("  timecachectl "));
  }
  EXPECT_EQ(Run({"--version"}).exit_code, 0);
}

TEST_F(CliTest, NamespaceThatIsMissingSaysHowToMakeIt) {
  ProcessResult result = Run({"get", "key", "-n", "sessions"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("create it with: timecachectl ns create sessions"));
  result = Run({"ns", "delete", "carts"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("timecachectl ns create carts"));
}

TEST_F(CliTest, ErrorsAreJsonOnStandardErrorWhereAskedFor) {
  const ProcessResult result = Run({"size", "-n", "none", "--json"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  const json error = json::parse(result.err)["error"];
  EXPECT_EQ(error["code"], "NOT_FOUND");
  EXPECT_EQ(error["reason"], "NAMESPACE_NOT_FOUND");
}

TEST_F(CliTest, CallThatIsNotAnsweredSaysSo) {
  service_.Hang(true);
  const ProcessResult result = Run({"size", "--timeout", "50ms"});
  service_.Hang(false);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("within 50ms"));
}

TEST(CliWithoutServerTest, SaysHowToStartOne) {
  std::string address;
  {
    FakeService service;
    address = service.address();
  }
  for (const std::string command : {"size", "scan", "watch"}) {
    const ProcessResult result =
        Process({TIMECACHECTL, command, "--address", address}).Wait();
    EXPECT_EQ(result.exit_code, 2) << command;
    EXPECT_THAT(result.err,
                HasSubstr(absl::StrCat("no server at ", address,
                                       ": start one with ./dev run")));
  }
}

TEST_F(CliTest, NamespaceOptionsAreSentAsGiven) {
  const ProcessResult result = Run({"ns",
                                    "create",
                                    "n",
                                    "--ttl",
                                    "5m",
                                    "--buckets",
                                    "3",
                                    "--max-ttl",
                                    "1d",
                                    "--sliding",
                                    "--max-entries",
                                    "10",
                                    "--max-bytes",
                                    "1GiB",
                                    "--limit-policy",
                                    "evict-oldest",
                                    "--max-value-bytes",
                                    "2MiB",
                                    "--event-retention",
                                    "10m",
                                    "--event-retention-bytes",
                                    "32MiB",
                                    "--shards",
                                    "4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("evict-oldest"));
  const v1::NamespaceOptions options =
      client_.GetNamespace("n").value().options();
  EXPECT_EQ(options.ttl().seconds(), 300);
  EXPECT_EQ(options.num_buckets(), 3u);
  EXPECT_EQ(options.max_ttl().seconds(), 86'400);
  EXPECT_TRUE(options.sliding());
  EXPECT_EQ(options.max_entries(), 10u);
  EXPECT_EQ(options.max_bytes(), 1u << 30);
  EXPECT_EQ(options.limit_policy(), v1::LIMIT_POLICY_EVICT_OLDEST);
  EXPECT_EQ(options.max_value_bytes(), 2u << 20);
  EXPECT_EQ(options.event_retention().seconds(), 600);
  EXPECT_EQ(options.event_retention_bytes(), 32u << 20);
  EXPECT_EQ(options.num_shards(), 4u);
  ASSERT_EQ(Run({"ns", "update", "n", "--no-sliding"}).exit_code, 0);
  EXPECT_FALSE(client_.GetNamespace("n").value().options().sliding());
  EXPECT_EQ(client_.GetNamespace("n").value().options().num_buckets(), 3u);
}

TEST_F(CliTest, ScanByPrefixWithLimit) {
  for (const char* key : {"a1", "a2", "b"}) {
    ASSERT_TRUE(client_.Put(key, "v").ok());
  }
  EXPECT_EQ(Run({"scan", "a"}).out, "a1\tv\na2\tv\n");
  EXPECT_EQ(Run({"scan", "--keys-only", "--limit", "2"}).out, "a1\na2\n");
  const ProcessResult lines = Run({"scan", "--json", "--keys-only"});
  EXPECT_EQ(
      json::parse(lines.out.substr(0, lines.out.find('\n'))).count("value"),
      0u);
}

TEST_F(CliTest, LoadTsv) {
  const ProcessResult result =
      Run({"load", "--ttl", "60s"}, "a\t1\n\nb\t2\na\t3");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("loaded 3 entries in "));
  EXPECT_EQ(client_.Get("a").value()->value, "3");
  EXPECT_EQ(client_.Get("b").value()->value, "2");
  EXPECT_EQ(service_.last_put().ttl().seconds(), 60);
}

TEST_F(CliTest, LoadJsonLinesFromAFile) {
  const std::string path =
      absl::StrCat(::testing::TempDir(), "/timecachectl_load.", getpid());
  std::ofstream(path) << R"({"key":"a","value":"1","ttl":"10s"})"
                      << "\n"
                      << R"({"key_hex":"ff","value_base64":"AA=="})"
                      << "\n";
  const json summary = RunJson({"load", path});
  unlink(path.c_str());
  EXPECT_EQ(summary["loaded"], 2);
  EXPECT_EQ(summary["bad_lines"], 0);
  EXPECT_EQ(client_.Get("\xff").value()->value, "\0"s);
}

TEST_F(CliTest, LoadReportsBadLinesAndStoresTheRest) {
  const std::string input = "a\t1\nno tab\nb\t2\n";
  ProcessResult result = Run({"load"}, input);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("line 2: no tab"));
  EXPECT_THAT(result.out, HasSubstr("1 bad lines"));
  EXPECT_EQ(client_.Size()->entries, 2u);
  EXPECT_EQ(Run({"load", "--skip-bad"}, input).exit_code, 0);
}

TEST_F(CliTest, LoadCountsWhatTheServerFindsMalformed) {
  const ProcessResult result =
      Run({"load"}, R"({"key":"a","value":"1","ttl":"0s"})"s + "\n" +
                        R"({"key":"b","value":"1"})" + "\n");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("line 1: ttl"));
  EXPECT_EQ(client_.Size()->entries, 1u);
}

TEST_F(CliTest, LoadGivesUpAtAnErrorThatIsNotTheLines) {
  const ProcessResult result = Run({"load", "-n", "none"}, "a\t1\nb\t2\n");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("timecachectl ns create none"));
  EXPECT_EQ(Run({"load", "/no/such/file"}).exit_code, 2);
}

TEST_F(CliTest, LoadStopsAtTheStreamsEndAndNamesTheFirstLineNotStored) {
  service_.SetPipeline({.answers_max = 1,
                        .end = MakeError(grpc::StatusCode::UNAVAILABLE,
                                         "draining", "DRAINING")});
  const ProcessResult result = Run({"load"}, "a\t1\nb\t2\nc\t3\n");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.out, HasSubstr("loaded 1 entries"));
  EXPECT_THAT(result.out, HasSubstr("then gave up"));
  EXPECT_THAT(result.err, HasSubstr("line 2 was not stored"));
  EXPECT_THAT(result.err, HasSubstr("draining"));
}

TEST_F(CliTest, LoadKeepsTheOrderOfOneKeyWhateverIsInFlight) {
  std::string input;
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&input, "key\t", i, "\n");
  for (const std::string in_flight : {"1", "2", "100", "65536"}) {
    const ProcessResult result = Run({"load", "--in-flight", in_flight}, input);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(client_.Get("key").value()->value, "2999");
  }
}

}  // namespace
}  // namespace timecache

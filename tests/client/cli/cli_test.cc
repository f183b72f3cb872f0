// timecachectl as a process, against a stand-in for the server.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/client/cli/cli_fixture.h"

namespace timecache {
namespace {

using namespace std::string_literals;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(CliTest, ConditionThatDoesNotHoldExitsWithOne) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  EXPECT_EQ(Run({"put", "key", "new", "--if-absent"}).code, 1);
  EXPECT_EQ(Run({"put", "other", "new", "--if-present"}).code, 1);
  EXPECT_EQ(Run({"rm", "key", "--if-version", "99"}).code, 1);
  EXPECT_EQ(RunJson({"touch", "key", "--if-version", "99"}),
            json({{"touched", false}, {"reason", "VERSION_MISMATCH"}}));
  EXPECT_EQ(RunJson({"touch", "other", "--if-version", "99"}),
            json({{"touched", false}, {"reason", "KEY_NOT_FOUND"}}));
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

TEST_F(CliTest, DeathsAreBars) {
  EXPECT_EQ(Run({"deaths"}).out, "nothing is there to die\n");
  Run({"put", "a", "1", "--ttl", "3s"});
  Run({"put", "b", "12", "--ttl", "6s"});
  Run({"put", "c", "123", "--ttl", "6s"});
  const json deaths = RunJson({"deaths", "--bars", "2"});
  ASSERT_EQ(deaths["bars"].size(), 2u);
  EXPECT_EQ(deaths["bars"][0]["entries"], 1);
  EXPECT_EQ(deaths["bars"][1]["entries"], 2);
  EXPECT_EQ(deaths["bars"][1]["bytes"], 7);
  const std::string text = Run({"deaths", "--within", "4s"}).out;
  EXPECT_NE(text.find(std::string(40, '#')), std::string::npos) << text;
  EXPECT_NE(text.find("later"), std::string::npos) << text;
  EXPECT_EQ(Run({"deaths", "--bars", "0"}).code, 2);
}

TEST_F(CliTest, HotShowsTheMostUsedKeys) {
  v1::GetHotKeysResponse response;
  v1::HotKey& key = *response.add_keys();
  key.set_key("a\x01");
  key.set_reads_per_second(1234.4);
  key.set_writes_per_second(0.5);
  key.set_value_bytes(2048);
  response.mutable_window()->set_seconds(60);
  response.set_sampled(1024);
  response.set_operations_per_second(5000);
  service_.Answer(response);
  EXPECT_THAT(
      Run({"hot"}).out,
      AllOf(HasSubstr("READ/S"), HasSubstr("a\\x01 "), HasSubstr(" 1,234 "),
            HasSubstr(" 0.5 "),
            HasSubstr("5,000 operations/s over 1m, a sample of 1,024\n")));
  const json hot = RunJson({"hot", "--count", "1"});
  EXPECT_EQ(hot["keys"][0]["reads_per_second"], 1234.4);
  EXPECT_EQ(hot["window"], "1m");
  EXPECT_EQ(service_.Requests<v1::GetHotKeysRequest>().back().max_keys(), 1u);
  EXPECT_EQ(Run({"hot", "--count", "65"}).code, 2);
}

TEST_F(CliTest, TraceparentsAreSentAsTheyAre) {
  const std::string trace =
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(Run({"put", "a", "1", "--traceparent", trace}).code, 0);
  EXPECT_EQ(service_.Requests<v1::PutRequest>().back().traceparent(), trace);
  EXPECT_EQ(Run({"append", "b", "1", "--traceparent", trace}).code, 0);
  EXPECT_EQ(service_.Requests<v1::AppendRequest>().back().traceparent(), trace);
  const test::Exit bad = Run({"put", "a", "1", "--traceparent", "x"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("traceparent"), std::string::npos) << bad.err;
}

TEST_F(CliTest, BigShowsTheLargestEntries) {
  for (int i = 1; i <= 9; ++i) {
    Run({"put", absl::StrCat("key", i), std::string(i, 'v')});
  }
  Run({"gather", "keys", "part", std::string(100, 'v'), "--parts", "2"});
  const json big = RunJson({"big", "--count", "3"});
  EXPECT_EQ(big["all"], true);
  EXPECT_EQ(big["entries"], 10);
  ASSERT_EQ(big["largest"].size(), 3u);
  EXPECT_EQ(big["largest"][0], json({{"bytes", 4 + 4 + 100}, {"key", "keys"}}));
  EXPECT_EQ(big["largest"][1]["key"], "key9");
  EXPECT_EQ(big["largest"][2]["bytes"], 4 + 8);
  const json sample = RunJson({"big", "key1", "--sample", "1"});
  EXPECT_EQ(sample["entries"], 1);
  EXPECT_EQ(sample["all"], true);
  EXPECT_EQ(RunJson({"big", "--sample", "2"})["all"], false);
  EXPECT_NE(Run({"big"}).out.find("all 10 entries"), std::string::npos);
}

TEST_F(CliTest, AGatherKeepsTheFirstAndRemembers) {
  Run({"gather", "g", "a", "1", "--parts", "2"});
  EXPECT_EQ(RunJson({"gather", "g", "a", "2", "--keep-first"})["duplicate"],
            true);
  EXPECT_EQ(RunJson({"gather", "g", "b", "3", "--remember", "1m"})["complete"],
            true);
  EXPECT_EQ(RunJson({"gather", "g", "b", "3"})["reason"], "GATHER_COMPLETE");
}

TEST_F(CliTest, WhatHasAnIdIsDoneOnce) {
  EXPECT_EQ(Run({"append", "log", "x", "--id", "1"}).code, 2);
  Run({"ns", "update", "default", "--idempotency-window", "1m"});
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(RunJson({"append", "log", "x", "--id", "1"})["value_bytes"], 1);
  }
}

TEST_F(CliTest, PutAndTouchTakeADueDate) {
  ASSERT_EQ(Run({"put", "key", "v", "--ttl", "5s", "--expire-at",
                 "1970-01-01T01:00:00.5Z"})
                .code,
            0);
  const v1::PutRequest put = service_.Last<v1::PutRequest>();
  EXPECT_EQ(put.expire_at().seconds(), 3'600);
  EXPECT_EQ(put.expire_at().nanos(), 500'000'000);
  EXPECT_FALSE(put.allow_past());
  const json got = RunJson({"get", "key"});
  EXPECT_EQ(got["deadline"], "1970-01-01T01:00:00.5Z");
  EXPECT_EQ(got["own_ttl"], "5s");
  EXPECT_EQ(got["create_time"], "1970-01-01T00:00:00Z");
  EXPECT_THAT(Run({"get", "key", "--all"}).out, HasSubstr("own ttl  5s\n"));
  ASSERT_EQ(Run({"touch", "key", "--expire-at", "7200", "--allow-past"}).code,
            0);
  EXPECT_EQ(RunJson({"scan"})["deadline"], "1970-01-01T02:00:00Z");
  EXPECT_EQ(Run({"put", "key", "v", "--allow-past"}).code, 2);
  EXPECT_EQ(
      Run({"put", "key", "v", "--keep-deadline", "--expire-at", "7"}).code, 2);
}

TEST_F(CliTest, ValueFromStandardInputIsTakenAsItIs) {
  const std::string value = "a\0b\xff\n"s;
  EXPECT_EQ(Run({"put", "key", "-"}, value).code, 0);
  EXPECT_EQ(service_.Last<v1::PutRequest>().value(), value);
  EXPECT_EQ(Run({"get", "key", "--raw"}).out, value);
  EXPECT_EQ(Run({"get", "key", "--hex"}).out, "610062ff0a\n");
  EXPECT_EQ(RunJson({"get", "key"})["value_base64"], "YQBi/wo=");
}

TEST_F(CliTest, KeysAndValuesHaveEncodingsOfTheirOwn) {
  ASSERT_EQ(Run({"put", "b1", "cafe", "--hex"}).code, 0);
  EXPECT_EQ(service_.Last<v1::PutRequest>().key(), "b1");
  EXPECT_EQ(service_.Last<v1::PutRequest>().value(), "\xca\xfe");
  EXPECT_EQ(Run({"get", "b1", "--hex"}).out, "cafe\n");
  EXPECT_EQ(Run({"get", "6231", "--key-hex", "--base64"}).out, "yv4=\n");
  EXPECT_EQ(Run({"scan", "--hex"}).out, "b1\tcafe\n");
  EXPECT_EQ(Run({"scan", "62", "--key-hex"}).out, "6231\t\\xca\\xfe\n");
  EXPECT_EQ(RunJson({"get", "b1", "--hex"})["value_hex"], "cafe");
  EXPECT_EQ(RunJson({"get", "b1", "--hex"})["key"], "b1");
  EXPECT_EQ(Run({"touch", "6231", "--key-hex"}).code, 0);
  EXPECT_EQ(Run({"load", "--hex"}, "b2\t00\n").code, 0);
  EXPECT_EQ(Run({"load", "--key-base64"}, "YjM=\ttext\n").code, 0);
  EXPECT_EQ(client_.Get("b2").value()->value, "\0"s);
  EXPECT_EQ(client_.Get("b3").value()->value, "text");
  EXPECT_EQ(Run({"rm", "YjM=", "--key-base64"}).code, 0);
}

TEST_F(CliTest, ValueThatLooksLikeAFlagGoesBehindTwoDashes) {
  EXPECT_EQ(Run({"put", "key", "--", "-5"}).code, 0);
  EXPECT_EQ(service_.Last<v1::PutRequest>().value(), "-5");
}

TEST_F(CliTest, KeysNamedLikeCommandsAreKeys) {
  EXPECT_EQ(Run({"put", "get", "size"}).code, 0);
  EXPECT_EQ(Run({"get", "get"}).out, "size\n");
  EXPECT_EQ(Run({"ns", "create", "list"}).code, 0);
  EXPECT_EQ(Run({"ns", "get", "list"}).code, 0);
}

TEST_F(CliTest, GlobalFlagsGoBeforeAndAfterTheCommand) {
  ASSERT_TRUE(client_.CreateNamespace("n").ok());
  ASSERT_TRUE(client_.In("n").Put("key", "value").ok());
  EXPECT_EQ(Run({"-n", "n", "get", "key"}).code, 0);
  EXPECT_EQ(Run({"get", "key", "-n", "n"}).code, 0);
  EXPECT_EQ(Run({"get", "-n", "n", "key"}).code, 0);
  EXPECT_EQ(Run({"--json", "ns", "get", "n"}).out,
            Run({"ns", "get", "n", "--json"}).out);
}

TEST_F(CliTest, StatisticsAreShownWhereTheyAreAskedFor) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  EXPECT_EQ(RunJson({"ns", "get", "default"})["statistics"]["entries"], 1);
  EXPECT_EQ(RunJson({"ns", "list"})["namespaces"][0]["statistics"]["entries"],
            1);
  EXPECT_THAT(Run({"ns", "get", "default"}).out,
              ContainsRegex("\nentries +1\nbytes +8 B\n"));
  // Who makes or changes a namespace did not ask for them.
  EXPECT_EQ(RunJson({"ns", "create", "n"}).count("statistics"), 0u);
  EXPECT_EQ(RunJson({"ns", "update", "n"}).count("statistics"), 0u);
  const test::Exit made = Run({"ns", "create", "m", "--ttl", "5m"});
  EXPECT_THAT(made.out, ContainsRegex("\nttl +5m\n"));
  EXPECT_THAT(made.out, ::testing::Not(HasSubstr("watermark")));
}

TEST_F(CliTest, OptionsTakeTheirDefaultsWhereAskedFor) {
  ASSERT_EQ(
      Run({"ns", "create", "n", "--max-entries", "5", "--buckets", "3"}).code,
      0);
  const json changed =
      RunJson({"ns", "update", "n", "--default", "max-entries", "--ttl", "5m",
               "--default", "max-ops", "--default", "dead-letter"});
  EXPECT_EQ(changed["options"]["max_entries"], 0);
  EXPECT_EQ(changed["options"]["num_buckets"], 3);
  EXPECT_EQ(changed["options"]["ttl_ms"], 300'000);
  EXPECT_THAT(
      service_.Last<v1::UpdateNamespaceRequest>().update_mask().paths(),
      ::testing::UnorderedElementsAre("options.max_entries", "options.ttl",
                                      "options.max_operations_per_second",
                                      "options.dead_letter_namespace"));
  for (const char* option : {"shards", "help", "no-sliding", "name"}) {
    const test::Exit wrong = Run({"ns", "update", "n", "--default", option});
    EXPECT_EQ(wrong.code, 2) << option;
    EXPECT_THAT(wrong.err, HasSubstr("is none of ttl, buckets, ")) << option;
  }
}

// Whatever the name of a flag is: there is an option for it.
TEST_F(CliTest, EveryOptionOfANamespaceHasADefault) {
  ASSERT_TRUE(client_.CreateNamespace("n").ok());
  const test::Exit wrong = Run({"ns", "update", "n", "--default", "all"});
  const std::string list = wrong.err.substr(wrong.err.find("none of ") + 8);
  const std::vector<std::string> names =
      absl::StrSplit(list.substr(0, list.find('\n')), absl::ByString(", "));
  std::vector<std::string> arguments = {"ns", "update", "n"};
  for (const std::string& name : names) {
    arguments.insert(arguments.end(), {"--default", name});
  }
  ASSERT_EQ(Run(arguments).code, 0);
  std::vector<std::string> paths;
  const auto* fields = v1::NamespaceOptions::descriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    // Which cannot change.
    const std::string& name = fields->field(i)->name();
    if (name == "num_shards" || name == "num_partitions") continue;
    paths.push_back("options." + fields->field(i)->name());
  }
  EXPECT_THAT(service_.Last<v1::UpdateNamespaceRequest>().update_mask().paths(),
              ::testing::UnorderedElementsAreArray(paths));
}

TEST_F(CliTest, EnvironmentGivesAddressAndNamespace) {
  ASSERT_TRUE(client_.CreateNamespace("n").ok());
  ASSERT_TRUE(client_.In("n").Put("key", "value").ok());
  const test::Exit result =
      test::ChildProcess({TIMECACHECTL, "get", "key"}, "",
                         {{"TIMECACHED_ADDRESS", service_.address()},
                          {"TIMECACHED_NAMESPACE", "n"}})
          .Wait();
  EXPECT_EQ(result.out, "value\n") << result.err;
}

TEST_F(CliTest, WrongUsageExitsWithTwo) {
  const std::vector<std::vector<std::string>> cases = {
      {},
      {"fetch"},
      {"get"},
      {"get", "a", "b", "--raw"},
      {"rm"},
      {"rm", "a", "--prefix", "b"},
      {"rm", "a", "b", "--if-version", "1"},
      {"get", "a", "--json", "--output", "table"},
      {"get", "a", "--output", "xml"},
      {"get", "a", "--address", "http://host"},
      {"put", "key", "value", "--ttl", "soon"},
      {"put", "key", "value", "--if-absent", "--if-present"},
      {"put", "key", "value", "--if-version", "-1"},
      {"get", "key", "--hex", "--base64"},
      {"get", "xyz", "--key-hex"},
      {"watch", "--count", "0"},
      {"get", "key", "-n", "a", "-n", "b"},
      {"journal"},
      {"journal", "check"},
      {"journal", "salvage", "from"},
      {"ns"},
      {"ns", "create"},
      {"ns", "create", "n", "--limit-policy", "panic"},
      {"ns", "create", "n", "--durability", "forever"},
      {"ns", "create", "n", "--restart-policy", "wait"},
      {"scan", "--limit", "0"},
      {"load", "--in-flight", "0"}};
  for (const auto& arguments : cases) {
    const test::Exit result = Run(arguments);
    EXPECT_EQ(result.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_NE(result.err, "") << ::testing::PrintToString(arguments);
    EXPECT_EQ(result.out, "") << ::testing::PrintToString(arguments);
  }
  const test::Exit zero = Run({"scan", "--limit", "0"});
  EXPECT_THAT(zero.err, HasSubstr("is not a number from 1"));
  EXPECT_LT(zero.err.size(), 100u);
}

TEST_F(CliTest, HelpAndVersionAreCommandsToo) {
  EXPECT_EQ(Run({"version"}).out, Run({"--version"}).out);
  EXPECT_NE(RunJson({"version"})["version"], "");
  EXPECT_EQ(Run({"help"}).out, Run({"--help"}).out);
  EXPECT_EQ(Run({"help", "put"}).out, Run({"put", "--help"}).out);
  EXPECT_EQ(Run({"help", "ns", "create"}).out,
            Run({"ns", "create", "--help"}).out);
  const test::Exit result = Run({"help", "gett"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("get"));
}

TEST_F(CliTest, NamespaceThatIsMissingSaysHowToMakeIt) {
  test::Exit result = Run({"get", "key", "-n", "sessions"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("create it with: timecachectl ns create sessions"));
  // Not to a command that was to delete or change it.
  result = Run({"ns", "delete", "carts"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, ::testing::Not(HasSubstr("create")));
  EXPECT_THAT(result.err, HasSubstr("timecachectl ns list"));
}

TEST_F(CliTest, ErrorsAreJsonOnStandardErrorWhereAskedFor) {
  const test::Exit result = Run({"size", "-n", "none", "--json"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  const json error = json::parse(result.err)["error"];
  EXPECT_EQ(error["code"], "NOT_FOUND");
  EXPECT_EQ(error["reason"], "NAMESPACE_NOT_FOUND");
}

TEST_F(CliTest, CallThatIsNotAnsweredSaysSo) {
  service_.Hang(true);
  const test::Exit result = Run({"size", "--timeout", "50ms"});
  service_.Hang(false);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("within 50ms"));
}

TEST(CliWithoutServerTest, SaysWhichServerAndHowToNameAnother) {
  std::string address;
  {
    FakeService service;
    address = service.address();
  }
  for (const std::string command : {"size", "scan", "watch"}) {
    const test::Exit result =
        test::ChildProcess({TIMECACHECTL, command, "--address", address})
            .Wait();
    EXPECT_EQ(result.code, 2) << command;
    EXPECT_THAT(result.err,
                HasSubstr(absl::StrCat("no server at ", address,
                                       ": is timecached running there?")));
    EXPECT_THAT(result.err, HasSubstr("--address"));
  }
}

// Who has the program from a package has no source tree.
TEST(CliWithoutServerTest, NoHelpSpeaksOfTheSourceTree) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{
           {"__man"}, {"--help"}, {"size", "--address", "127.0.0.1:1"}}) {
    std::vector<std::string> argv = words;
    argv.insert(argv.begin(), TIMECACHECTL);
    const test::Exit result = test::ChildProcess(argv).Wait();
    EXPECT_THAT(result.out + result.err, ::testing::Not(HasSubstr("./dev")));
    EXPECT_NE(result.out + result.err, "");
  }
}

TEST_F(CliTest, OutputNamesTheForm) {
  ASSERT_TRUE(client_.Put("a", "1").ok());
  EXPECT_EQ(Run({"get", "a", "-o", "json"}).out,
            Run({"get", "a", "--json"}).out);
  EXPECT_EQ(Run({"get", "a", "--output", "table"}).out, "1\n");
}

TEST_F(CliTest, NamespaceOptionsAreSentAsGiven) {
  const test::Exit result = Run(absl::StrSplit(
      "ns create n --ttl 5m --buckets 3 --max-ttl 1d --sliding "
      "--max-entries 10 --max-bytes 1GiB --limit-policy evict-oldest "
      "--max-value-bytes 2MiB --event-retention 10m "
      "--event-retention-bytes 32MiB --shards 4 --partitions 3 "
      "--dead-letter failed",
      ' '));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("evict-oldest"));
  const NamespaceOptions options = client_.GetNamespace("n").value().options;
  EXPECT_EQ(options.ttl, absl::Minutes(5));
  EXPECT_EQ(options.num_buckets, 3u);
  EXPECT_EQ(options.max_ttl, absl::Hours(24));
  EXPECT_EQ(options.sliding, true);
  EXPECT_EQ(options.max_entries, 10u);
  EXPECT_EQ(options.max_bytes, 1u << 30);
  EXPECT_EQ(options.limit_policy, LimitPolicy::kEvictOldest);
  EXPECT_EQ(options.max_value_bytes, 2u << 20);
  EXPECT_EQ(options.event_retention, absl::Minutes(10));
  EXPECT_EQ(options.event_retention_bytes, 32u << 20);
  EXPECT_EQ(options.num_shards, 4u);
  EXPECT_EQ(options.num_partitions, 3u);
  EXPECT_EQ(options.dead_letter_namespace, "failed");
  EXPECT_THAT(result.out, ContainsRegex("durability +memory\n"));
  EXPECT_THAT(result.out, ContainsRegex("dead letter namespace +failed\n"));
  EXPECT_THAT(result.out, ContainsRegex("restart policy +fire\n"));
  ASSERT_EQ(
      Run({"ns", "update", "n", "--no-sliding", "--restart-policy", "Fire"})
          .code,
      0);
  EXPECT_EQ(client_.GetNamespace("n").value().options.sliding, false);
  EXPECT_EQ(client_.GetNamespace("n").value().options.num_buckets, 3u);
}

TEST_F(CliTest, DurabilityIsSentAsGiven) {
  // This server has no journal.
  EXPECT_EQ(Run({"ns", "create", "n", "--durability", "sync",
                 "--restart-policy", "pause"})
                .code,
            2);
  const auto sent = service_.Last<v1::CreateNamespaceRequest>().options();
  EXPECT_EQ(sent.durability(), v1::DURABILITY_SYNC);
  EXPECT_EQ(sent.restart_policy(), v1::RESTART_POLICY_PAUSE);
}

TEST_F(CliTest, NamesOfOptionsMayBeTheConfigurationsAndTheApis) {
  for (const char* name :
       {"reject", "evict_oldest", "REJECT", "EVICT_OLDEST"}) {
    ASSERT_EQ(Run({"ns", "update", "default", "--limit-policy", name}).code, 0);
    EXPECT_EQ(client_.GetNamespace("default").value().options.limit_policy,
              absl::EqualsIgnoreCase(name, "reject")
                  ? LimitPolicy::kReject
                  : LimitPolicy::kEvictOldest);
  }
}

TEST_F(CliTest, ScanByPrefixWithLimit) {
  for (const char* key : {"a1", "a2", "b"}) {
    ASSERT_TRUE(client_.Put(key, "v").ok());
  }
  EXPECT_EQ(Run({"scan", "a"}).out, "a1\tv\na2\tv\n");
  EXPECT_EQ(Run({"scan", "--keys-only", "--limit", "2"}).out, "a1\na2\n");
  const test::Exit lines = Run({"scan", "--json", "--keys-only"});
  EXPECT_EQ(
      json::parse(lines.out.substr(0, lines.out.find('\n'))).count("value"),
      0u);
}

TEST_F(CliTest, AReaderThatLeavesIsNoError) {
  // More than a pipe holds.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        client_.Put(absl::StrCat("key", i), std::string(64'000, 'v')).ok());
  }
  test::ChildProcess scan(Argv({"scan"}));
  EXPECT_THAT(scan.ReadLine(), StartsWith("key0\tvvv"));
  scan.CloseOutput();
  const test::Exit result = scan.Wait();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

TEST_F(CliTest, AClosedStandardOutputIsAnErrorAndNotTheConnection) {
  ASSERT_TRUE(client_.Put("key", "value").ok());
  const test::Exit result =
      test::ChildProcess({"/bin/sh", "-c", "exec \"$0\" \"$@\" >&-",
                          TIMECACHECTL, "--address", service_.address(), "get",
                          "key"})
          .Wait();
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("standard output: "));
}

TEST_F(CliTest, WhatNoServerTakesIsRefusedWithAReason) {
  const test::Exit too_long =
      test::ChildProcess(
          {"/bin/sh", "-c", "head -c 16777217 /dev/zero | \"$0\" \"$@\"",
           TIMECACHECTL, "--address", service_.address(), "put", "key", "-"})
          .Wait();
  EXPECT_EQ(too_long.code, 2);
  EXPECT_THAT(too_long.err, HasSubstr("longer than the largest value"));
  EXPECT_EQ(client_.Size()->entries, 0u);
}

}  // namespace
}  // namespace timecache

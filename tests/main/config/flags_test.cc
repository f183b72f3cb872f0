#include "server/main/config/flags.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/base/version.h"
#include "server/main/config/config.h"

namespace timecache::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Outcome {
  std::variant<Flags, int> result;
  std::string out;
  std::string err;
};

Outcome Parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "timecached");
  std::ostringstream out;
  std::ostringstream err;
  auto result = ParseFlags(static_cast<int>(arguments.size()), arguments.data(),
                           out, err);
  return {std::move(result), out.str(), err.str()};
}

Flags ParsedFlags(std::vector<const char*> arguments) {
  const Outcome outcome = Parse(std::move(arguments));
  EXPECT_TRUE(std::holds_alternative<Flags>(outcome.result)) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Flags* flags = std::get_if<Flags>(&outcome.result);
  return flags != nullptr ? *flags : Flags();
}

// What wrong flags are refused with, after checking that it is one line and
// code 2.
std::string FlagRefusal(std::vector<const char*> arguments) {
  const Outcome outcome = Parse(std::move(arguments));
  const int* code = std::get_if<int>(&outcome.result);
  EXPECT_TRUE(code != nullptr && *code == 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
      << outcome.err;
  EXPECT_THAT(outcome.err, StartsWith("timecached: "));
  return outcome.err;
}

TEST(FlagsTest, NoFlagsAreTheDefaultConfiguration) {
  const Flags flags = ParsedFlags({});
  EXPECT_FALSE(flags.virtual_clock);
  EXPECT_FALSE(flags.check_config);
  const auto config = ConfigFromFlags(flags);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->SerializeAsString(), DefaultConfig().SerializeAsString());
}

TEST(FlagsTest, EveryFlagIsRead) {
  const Flags flags = ParsedFlags({"--config",
                                   "t.yaml",
                                   "--listen=a:1",
                                   "--listen",
                                   "unix:/s",
                                   "--virtual-clock",
                                   "--log-level=debug",
                                   "--log-format",
                                   "json",
                                   "--check-config",
                                   "--http",
                                   "127.0.0.1:7172",
                                   "--journal",
                                   "/var/lib/a",
                                   "--cluster",
                                   "eu",
                                   "--node=n",
                                   "--advertise",
                                   "n:1",
                                   "--kafka-brokers",
                                   "a:1,b:2",
                                   "--kafka-brokers=c:3",
                                   "--cluster-allow-unsafe"});
  EXPECT_EQ(flags.config, "t.yaml");
  EXPECT_THAT(flags.listen, ElementsAre("a:1", "unix:/s"));
  EXPECT_TRUE(flags.virtual_clock);
  EXPECT_EQ(flags.log_level, "debug");
  EXPECT_EQ(flags.log_format, "json");
  EXPECT_TRUE(flags.check_config);
  EXPECT_EQ(flags.http, "127.0.0.1:7172");
  EXPECT_EQ(flags.journal, "/var/lib/a");
  EXPECT_EQ(flags.cluster, "eu");
  EXPECT_EQ(flags.node, "n");
  EXPECT_EQ(flags.advertise, "n:1");
  EXPECT_THAT(flags.kafka_brokers, ElementsAre("a:1", "b:2", "c:3"));
  EXPECT_TRUE(flags.cluster_allow_unsafe);
}

TEST(FlagsTest, ClusterInitTakesWhatReachesTheCluster) {
  EXPECT_FALSE(ParsedFlags({"--cluster", "eu"}).cluster_init.has_value());
  const Flags defaults = ParsedFlags({"cluster", "init", "--config", "a.yaml"});
  ASSERT_TRUE(defaults.cluster_init.has_value());
  EXPECT_EQ(defaults.config, "a.yaml");
  EXPECT_EQ(defaults.cluster_init->partitions, std::nullopt);
  EXPECT_EQ(defaults.cluster_init->replication_factor, 3u);
  EXPECT_FALSE(defaults.cluster_init->json);
  const Flags flags =
      ParsedFlags({"cluster", "init", "--cluster=eu", "--kafka-brokers=a:1,b:2",
                   "--partitions=8", "--replication-factor=1",
                   "--cluster-allow-unsafe", "--json"});
  EXPECT_EQ(flags.cluster, "eu");
  EXPECT_THAT(flags.kafka_brokers, ElementsAre("a:1", "b:2"));
  EXPECT_TRUE(flags.cluster_allow_unsafe);
  EXPECT_EQ(flags.cluster_init->partitions, 8u);
  EXPECT_EQ(flags.cluster_init->replication_factor, 1u);
  EXPECT_TRUE(flags.cluster_init->json);
  const Outcome help = Parse({"cluster", "init", "--help"});
  EXPECT_EQ(std::get<int>(help.result), 0);
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("--partitions"), HasSubstr("example:")));
}

TEST(FlagsTest, WrongFlagsOfClusterInitEndWithTwo) {
  EXPECT_THAT(FlagRefusal({"cluster"}), HasSubstr("subcommand"));
  EXPECT_THAT(FlagRefusal({"cluster", "end"}), HasSubstr("subcommand"));
  EXPECT_THAT(FlagRefusal({"cluster", "init", "--partitions", "0"}),
              AllOf(HasSubstr("--partitions"), HasSubstr("1024")));
  EXPECT_THAT(FlagRefusal({"cluster", "init", "--replication-factor", "x"}),
              HasSubstr("--replication-factor"));
  EXPECT_THAT(FlagRefusal({"cluster", "init", "--node", "a"}),
              HasSubstr("--node"));
}

TEST(FlagsTest, ClusterRestoreTakesABackup) {
  const Flags flags = ParsedFlags(
      {"cluster", "restore", "--config", "a.yaml", "--json", "/backups/1"});
  EXPECT_FALSE(flags.cluster_init.has_value());
  ASSERT_TRUE(flags.cluster_restore.has_value());
  EXPECT_EQ(flags.config, "a.yaml");
  EXPECT_EQ(flags.cluster_restore->directory, "/backups/1");
  EXPECT_TRUE(flags.cluster_restore->json);
  EXPECT_THAT(FlagRefusal({"cluster", "restore"}), HasSubstr("directory"));
  EXPECT_THAT(FlagRefusal({"cluster", "restore", "a", "b"}), HasSubstr("b"));
  const Outcome help = Parse({"cluster", "restore", "--help"});
  EXPECT_EQ(std::get<int>(help.result), 0);
  EXPECT_THAT(help.out, HasSubstr("examples:"));
}

TEST(FlagsTest, ClusterInitNeedsNoAddressOfANode) {
  Flags flags = ParsedFlags({"--listen=0.0.0.0:7171", "--allow-plaintext",
                             "--cluster=eu", "--kafka-brokers=a:1"});
  EXPECT_THAT(ConfigFromFlags(flags).status().message(),
              HasSubstr("cluster.advertise"));
  flags.cluster_init.emplace();
  EXPECT_TRUE(ConfigFromFlags(flags).ok());
  flags.cluster_init.reset();
  flags.cluster_restore.emplace();
  EXPECT_TRUE(ConfigFromFlags(flags).ok());
}

TEST(FlagsTest, HelpAndVersionEndWithZero) {
  const Outcome help = Parse({"--help"});
  EXPECT_EQ(std::get<int>(help.result), 0);
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("examples:"), HasSubstr("--virtual-clock"),
                    HasSubstr("--check-config")));
  const Outcome version = Parse({"--version"});
  EXPECT_EQ(std::get<int>(version.result), 0);
  EXPECT_EQ(version.out, "timecached " + std::string(Version()) + "\n");
}

TEST(FlagsTest, TheManualHasEveryFlagAndTheExamples) {
  const Outcome manual = Parse({"--man"});
  EXPECT_EQ(std::get<int>(manual.result), 0);
  for (const char* part :
       {".TH TIMECACHED 8", ".SH NAME\ntimecached \\- key\\-value server",
        "\\-\\-check\\-config", "\\-\\-log\\-level",
        ".SH COMMANDS\n.SS cluster init\n", "\\-\\-replication\\-factor",
        ".SH EXAMPLES\n.RS 4\n.nf\n", "timecachectl(1)"}) {
    EXPECT_THAT(manual.out, HasSubstr(part));
  }
}

TEST(FlagsTest, WrongFlagsEndWithTwoAndOneLine) {
  EXPECT_THAT(FlagRefusal({"--lisen", "a:1"}), HasSubstr("--lisen"));
  EXPECT_THAT(FlagRefusal({"surplus"}), HasSubstr("surplus"));
  EXPECT_THAT(FlagRefusal({"--listen", "a:1", "b:2"}), HasSubstr("b:2"));
  EXPECT_THAT(
      FlagRefusal({"--listen", "localhost"}),
      AllOf(HasSubstr("--listen"), HasSubstr("has no port: write host:port")));
  EXPECT_THAT(FlagRefusal({"--listen"}), HasSubstr("--listen"));
  EXPECT_THAT(
      FlagRefusal({"--config", ""}),
      AllOf(HasSubstr("--config"), HasSubstr("expected a file's name")));
  EXPECT_THAT(FlagRefusal({"--journal="}), HasSubstr("--journal"));
  EXPECT_THAT(
      FlagRefusal({"--log-level", "loud"}),
      AllOf(HasSubstr("--log-level"),
            HasSubstr("expected debug, info, warning, error, got \"loud\"")));
  EXPECT_THAT(FlagRefusal({"--log-format=xml"}),
              HasSubstr("expected text, json"));
  EXPECT_THAT(FlagRefusal({"--log-format", "text", "--log-format", "json"}),
              HasSubstr("--log-format"));
}

TEST(FlagsTest, FlagsOverrideTheFile) {
  const std::string path = testing::TempDir() + "/flags_test.yaml";
  std::ofstream(path)
      << "listeners: [{address: '127.0.0.1:1'}, {address: '127.0.0.1:2'}]\n"
         "namespaces: [{name: kept}]\n"
         "log: {level: error, format: json}\n"
         "journal: {directory: a, max_clock_lag: 5s}\n";
  Flags flags;
  flags.config = path;
  flags.listen = {"localhost:3"};
  flags.log_level = "debug";
  flags.http = "localhost:4";
  flags.journal = "b";
  const auto config = ConfigFromFlags(flags);
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->listeners_size(), 1);
  EXPECT_EQ(config->listeners(0).address(), "localhost:3");
  EXPECT_EQ(config->namespaces(0).name(), "kept");
  EXPECT_EQ(config->http().address(), "localhost:4");
  EXPECT_EQ(config->journal().directory(), "b");
  EXPECT_EQ(config->journal().max_clock_lag().seconds(), 5);
  EXPECT_EQ(config->log().level(), config::v1::LOG_LEVEL_DEBUG);
  EXPECT_EQ(config->log().format(), config::v1::LOG_FORMAT_JSON);
}

}  // namespace
}  // namespace timecache::server

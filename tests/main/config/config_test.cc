#include "server/main/config/config.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/proto_to_text.h"
#include "server/api/yaml_to_proto.h"
#include "server/main/config/configured_namespaces.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

config::v1::ServerConfig Parsed(absl::string_view yaml) {
  auto config = ParseConfig(yaml, "t.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? *config : config::v1::ServerConfig();
}

std::string Refusal(absl::string_view yaml) {
  const auto config = ParseConfig(yaml, "t.yaml");
  EXPECT_FALSE(config.ok()) << yaml;
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

std::string LoadProblem(const std::string& path) {
  return std::string(LoadConfig(path).status().message());
}

TEST(ConfigTest, EmptyFileIsTheDefault) {
  EXPECT_EQ(Parsed("").SerializeAsString(),
            DefaultConfig().SerializeAsString());
  EXPECT_EQ(Parsed("# nothing\n").SerializeAsString(),
            DefaultConfig().SerializeAsString());
}

TEST(ConfigTest, WhatTheFileSaysReplacesTheDefault) {
  const config::v1::ServerConfig config = Parsed(
      "listeners: [{address: 0.0.0.0:1, allow_plaintext: true}]\n"
      "namespaces: [{name: a}, {name: b}]\n"
      "limits: {max_watchers: 7}\n"
      "grace_period: 0s\n");
  ASSERT_EQ(config.listeners_size(), 1);
  EXPECT_EQ(config.listeners(0).address(), "0.0.0.0:1");
  ASSERT_EQ(config.namespaces_size(), 2);
  EXPECT_EQ(config.namespaces(1).name(), "b");
  EXPECT_EQ(config.limits().max_watchers(), 7);
  EXPECT_EQ(config.limits().max_namespaces(), 1024);
  EXPECT_EQ(config.grace_period().seconds(), 0);
}

TEST(ConfigTest, ValuesOutOfRangeAreRefusedByLineAndName) {
  EXPECT_EQ(Refusal("limits:\n  max_namespaces: 0\n"),
            "t.yaml:2: limits.max_namespaces: must be from 1 to 100000, got 0");
  EXPECT_EQ(
      Refusal("limits:\n\n  max_watchers: 1000001\n"),
      "t.yaml:3: limits.max_watchers: must be from 1 to 1000000, got 1000001");
  EXPECT_EQ(
      Refusal("limits: {max_bytes: 9223372036854775808}"),
      "t.yaml:1: limits.max_bytes: must be from 0 to 9223372036854775807, got "
      "9223372036854775808");
  EXPECT_EQ(Parsed("limits: {max_entries: 9223372036854775807}")
                .limits()
                .max_entries(),
            9223372036854775807u);
  EXPECT_EQ(Refusal("grace_period: 3601s"),
            "t.yaml:1: grace_period: must be from 0s to 1h, got 1h1s");
  EXPECT_THAT(Refusal("grace_period: 3600.1s"),
              StartsWith("t.yaml:1: grace_period: must be from 0s to 1h, got"));
  EXPECT_EQ(Parsed("grace_period: 1h").grace_period().seconds(), 3600);
  EXPECT_THAT(Refusal("drain_delay: 301s"),
              StartsWith("t.yaml:1: drain_delay: must be from 0s to 5m, got"));
  EXPECT_EQ(Parsed("drain_delay: 5m").drain_delay().seconds(), 300);
  EXPECT_EQ(Parsed("").drain_delay().seconds(), 0);
  EXPECT_EQ(Parsed("").stall_grace().nanos(), 500'000'000);
  EXPECT_EQ(Parsed("stall_grace: 1h").stall_grace().seconds(), 3600);
  for (const char* bad : {"0s", "199ms", "3601s"}) {
    EXPECT_EQ(
        Refusal(absl::StrCat("stall_grace: ", bad)),
        absl::StrCat("t.yaml:1: stall_grace: must be from 200ms to 1h, got ",
                     bad == absl::string_view("3601s") ? "1h1s" : bad));
  }
}

TEST(ConfigTest, DefaultPartitionsHaveTheirRange) {
  EXPECT_EQ(Parsed("").default_partitions(), 1u);
  EXPECT_EQ(Parsed("default_partitions: 64").default_partitions(), 64u);
  for (const char* bad : {"0", "65"}) {
    EXPECT_EQ(
        Refusal(absl::StrCat("default_partitions: ", bad)),
        absl::StrCat("t.yaml:1: default_partitions: must be from 1 to 64, got ",
                     bad));
  }
}

TEST(ConfigTest, LimitsHaveTheirRanges) {
  struct Case {
    const char* limit;
    const char* problem;
  };
  for (const Case& c : {
           Case{"max_connections: 0", "must be from 1 to 1000000, got 0"},
           Case{"max_calls_per_connection: 1000001",
                "must be from 1 to 1000000, got 1000001"},
           Case{"max_memory_bytes: 1MiB",
                "must be 0 or from 16777216 to 9223372036854775807, got "
                "1048576"},
           Case{"max_connection_age: 999ms",
                "must be 0 or from 1s to 7d, got 999ms"},
           Case{"max_connection_age: 8d", "must be 0 or from 1s to 7d, got 8d"},
           Case{"max_call_duration: 99ms",
                "must be from 100ms to 1h, got 99ms"},
       }) {
    const std::string limit = c.limit;
    EXPECT_EQ(Refusal("limits: {" + limit + "}"),
              "t.yaml:1: limits." + limit.substr(0, limit.find(':')) + ": " +
                  c.problem);
  }
  for (const std::string limit :
       {"max_connections: 1000000", "max_memory_bytes: 0",
        "max_memory_bytes: 16MiB", "max_connection_age: 0s",
        "max_connection_age: 7d", "max_call_duration: 100ms"}) {
    EXPECT_TRUE(ParseConfig("limits: {" + limit + "}", "t.yaml").ok()) << limit;
  }
}

TEST(ConfigTest, WrongListenersAreRefused) {
  EXPECT_EQ(Refusal("listeners:\n  - {}\n"),
            "t.yaml:2: listeners[0]: has no address: add address: host:port");
  EXPECT_EQ(Refusal("listeners:\n  - address: localhost:1\n  - address: "
                    "localhost:99999\n"),
            "t.yaml:3: listeners[1].address: \"localhost:99999\" has no port "
            "from 0 to 65535 "
            "after the last colon");
  EXPECT_EQ(
      Refusal(
          "listeners:\n  - address: localhost:1\n  - address: localhost:1\n"),
      "t.yaml:3: listeners[1].address: the same as listeners[0]");
  EXPECT_EQ(
      Parsed("listeners: [{address: 'localhost:0'}, {address: 'localhost:0'}]")
          .listeners_size(),
      2);
  std::string many = "listeners:\n";
  for (int port = 0; port <= kMaxListeners; ++port) {
    absl::StrAppend(&many, "  - address: a:", port, "\n");
  }
  EXPECT_EQ(Refusal(many), "t.yaml:1: listeners: has 17, more than 16");
}

TEST(ConfigTest, HttpHasAPortOfItsOwn) {
  EXPECT_EQ(DefaultConfig().http().address(), "");
  EXPECT_EQ(Parsed("http: {address: '0.0.0.0:7172'}").http().address(),
            "0.0.0.0:7172");
  EXPECT_EQ(Refusal("http:\n  address: unix:/run/http\n"),
            "t.yaml:2: http.address: must be host:port: probes and Prometheus "
            "come by TCP");
  EXPECT_THAT(Refusal("http: {address: localhost}"),
              HasSubstr("http.address: \"localhost\" has no port"));
  EXPECT_EQ(Refusal("listeners: [{address: '127.0.0.1:1'}]\n"
                    "http: {address: '127.0.0.1:1'}"),
            "t.yaml:2: http.address: the same as a listener's: HTTP has a port "
            "of its own");
  EXPECT_EQ(Parsed("listeners: [{address: '127.0.0.1:0'}]\n"
                   "http: {address: '127.0.0.1:0'}")
                .http()
                .address(),
            "127.0.0.1:0");
}

TEST(ConfigTest, TheJournalHasADirectoryAndBoundsForTheClock) {
  EXPECT_TRUE(DefaultConfig().journal().has_directory());
  EXPECT_EQ(DefaultConfig().journal().directory(), "");
  EXPECT_FALSE(DefaultConfig().journal().has_max_clock_lag());
  const config::v1::JournalConfig journal =
      Parsed("journal: {directory: /var/lib/a, max_clock_lag: 3650d}")
          .journal();
  EXPECT_EQ(journal.directory(), "/var/lib/a");
  EXPECT_EQ(journal.max_clock_lag().seconds(), int64_t{3650} * 86'400);
  EXPECT_EQ(
      Parsed("journal: {max_clock_lag: 0s}").journal().max_clock_lag().nanos(),
      0);
  EXPECT_EQ(DefaultConfig().journal().reserve_bytes(), 128u << 20);
  EXPECT_EQ(Parsed("journal: {reserve_bytes: 0}").journal().reserve_bytes(),
            0u);
  EXPECT_EQ(Parsed("journal: {reserve_bytes: 1GiB}").journal().reserve_bytes(),
            1u << 30);
  EXPECT_EQ(Refusal("journal:\n  reserve_bytes: 2TiB\n"),
            "t.yaml:2: journal.reserve_bytes: must be from 0 to 1099511627776, "
            "got 2199023255552");
  EXPECT_EQ(Refusal("journal:\n  max_clock_lag: 3651d\n"),
            "t.yaml:2: journal.max_clock_lag: must be from 0s to 3650d, "
            "got 3651d");
  EXPECT_EQ(DefaultConfig().journal().max_clock_lead().seconds(),
            int64_t{366} * 86'400);
  EXPECT_EQ(Parsed("journal: {max_clock_lead: 36500d}")
                .journal()
                .max_clock_lead()
                .seconds(),
            int64_t{36'500} * 86'400);
  EXPECT_EQ(Refusal("journal:\n  max_clock_lead: 36501d\n"),
            "t.yaml:2: journal.max_clock_lead: must be from 0s to 36500d, "
            "got 36501d");
}

TEST(ConfigTest, ADurableNamespaceNeedsAJournal) {
  for (const char* durability : {"async", "sync"}) {
    SCOPED_TRACE(durability);
    config::v1::ServerConfig config = Parsed(absl::StrCat(
        "namespaces: [{name: a}, {name: b, options: {durability: ", durability,
        "}}]"));
    const absl::Status status = CheckNamespaces(config);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              "namespace \"b\": durability needs a journal: set "
              "journal.directory, or start the server with --journal "
              "DIRECTORY");
    config.mutable_journal()->set_directory("journal");
    EXPECT_TRUE(CheckNamespaces(config).ok());
  }
  EXPECT_TRUE(
      CheckNamespaces(
          Parsed("namespaces: [{name: a, options: {durability: memory}}]"))
          .ok());
}

TEST(ConfigTest, WrongNamespacesAreRefused) {
  EXPECT_EQ(Refusal("namespaces:\n  - options: {ttl: 1s}\n"),
            "t.yaml:2: namespaces[0]: has no name: add name: NAME");
  EXPECT_EQ(Refusal("namespaces:\n  - name: a\n  - name: a\n"),
            "t.yaml:3: namespaces[1].name: the same as namespaces[0]");
  EXPECT_EQ(
      Refusal(
          "limits: {max_namespaces: 1}\nnamespaces: [{name: a}, {name: b}]\n"),
      "t.yaml:2: namespaces: has 2, more than limits.max_namespaces, 1");
}

TEST(ConfigTest, DeadLettersThatWouldComeBackAreRefused) {
  EXPECT_EQ(CheckNamespaces(
                Parsed("namespaces:\n"
                       "  - {name: a, options: {dead_letter_namespace: b}}\n"
                       "  - {name: b, options: {dead_letter_namespace: c}}\n"
                       "  - {name: c, options: {dead_letter_namespace: a}}\n"))
                .message(),
            "namespace \"a\": dead_letter_namespace must be another namespace, "
            "whose dead letters do not come back: they would never end: a -> b "
            "-> c -> a");
}

TEST(ConfigTest, LoadsAFileAndNamesItInErrors) {
  const std::string path = testing::TempDir() + "/config_test_load.yaml";
  std::ofstream(path) << "namespaces: [{name: from-file}]\n";
  const auto config = LoadConfig(path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->namespaces(0).name(), "from-file");
  std::ofstream(path) << "\nnamespace: x\n";
  EXPECT_EQ(
      LoadProblem(path),
      path + ":2: namespace: unknown field; did you mean \"namespaces\"?");
}

TEST(ConfigTest, FilesThatCannotBeReadAreExplained) {
  const std::string missing = testing::TempDir() + "/config_test_missing.yaml";
  EXPECT_EQ(LoadConfig(missing).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(LoadProblem(missing), StartsWith(missing + ": cannot be read"));
  EXPECT_THAT(LoadProblem(testing::TempDir()), HasSubstr("is a directory"));
  const std::string large = testing::TempDir() + "/config_test_large.yaml";
  std::ofstream(large) << std::string(kMaxYamlBytes + 1, '\n');
  EXPECT_THAT(LoadProblem(large), HasSubstr("is longer than 4194304 bytes"));
}

}  // namespace
}  // namespace timecache::server

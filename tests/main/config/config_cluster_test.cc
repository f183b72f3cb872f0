#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/api/proto_to_text.h"
#include "server/main/config/cluster_config.h"
#include "server/main/config/config.h"
#include "server/main/config/configured_namespaces.h"
#include "server/main/config/flags.h"

namespace timecache::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

config::v1::ClusterConfig ParsedCluster(absl::string_view yaml) {
  auto config = ParseConfig(yaml, "t.yaml");
  EXPECT_TRUE(config.ok()) << config.status();
  return config.ok() ? config->cluster() : config::v1::ClusterConfig();
}

std::string ClusterRefusal(absl::string_view yaml) {
  const auto config = ParseConfig(yaml, "t.yaml");
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument) << yaml;
  return std::string(config.status().message());
}

Flags NodeFlags() {
  Flags flags;
  flags.cluster = "eu";
  flags.kafka_brokers = {"127.0.0.1:9092"};
  return flags;
}

std::string FlagsRefusal(const Flags& flags) {
  return std::string(ConfigFromFlags(flags).status().message());
}

TEST(ConfigClusterTest, WithoutANameThereIsNoCluster) {
  const config::v1::ClusterConfig cluster = DefaultConfig().cluster();
  EXPECT_EQ(cluster.name(), "");
  EXPECT_EQ(cluster.node(), "");
  EXPECT_EQ(cluster.advertise(), "");
  EXPECT_FALSE(cluster.allow_unsafe());
  EXPECT_EQ(cluster.reads(), config::v1::CLUSTER_READS_LEASE);
  EXPECT_EQ(cluster.lease().seconds(), 1);
  EXPECT_EQ(cluster.failure_timeout().seconds(), 2);
  EXPECT_EQ(cluster.max_clock_skew().nanos(), 500'000'000);
}

TEST(ConfigClusterTest, ReadsAreOfAKindThatThereIs) {
  EXPECT_EQ(ParsedCluster("cluster: {name: eu, reads: confirmed, kafka: "
                          "{brokers: ['a:1']}}")
                .reads(),
            config::v1::CLUSTER_READS_CONFIRMED);
  EXPECT_THAT(ClusterRefusal("cluster: {reads: fast}"),
              HasSubstr("cluster.reads"));
}

TEST(ConfigClusterTest, NodesThatForwardCallsHaveAPrincipalIfThereAreRules) {
  EXPECT_FALSE(DefaultConfig().cluster().forward_calls());
  const std::string with = absl::StrCat(
      "access: {file: rules.yaml}\ncluster: {name: eu, kafka: {brokers: "
      "['a:1']}, forward_calls: true");
  EXPECT_THAT(ClusterRefusal(with + "}"), HasSubstr("cluster.peer_principal"));
  const std::string named = with + ", peer_principal: nodes";
  EXPECT_THAT(ClusterRefusal(named + "}"), HasSubstr("peer_token_file"));
  EXPECT_EQ(ParsedCluster(named + ", peer_token_file: t}").peer_principal(),
            "nodes");
  EXPECT_EQ(ParsedCluster("listeners: [{address: '127.0.0.1:7171', tls: "
                          "{certificate_file: c, key_file: k, client_ca_file: "
                          "a}}]\n" +
                          named + "}")
                .peer_principal(),
            "nodes");
  EXPECT_TRUE(ParsedCluster("cluster: {name: eu, kafka: {brokers: ['a:1']}, "
                            "forward_calls: true}")
                  .forward_calls());
}

TEST(ConfigClusterTest, ANodeHasItsNameAndAddressByDefault) {
  const config::v1::ClusterConfig cluster = ParsedCluster(
      "cluster: {name: eu, lease: 3s, kafka: {brokers: ['a:1', 'b:2']}}");
  EXPECT_NE(cluster.node(), "");
  EXPECT_EQ(cluster.advertise(), "127.0.0.1:7171");
  EXPECT_EQ(cluster.failure_timeout().seconds(), 6);
  EXPECT_THAT(cluster.kafka().brokers(), ElementsAre("a:1", "b:2"));
}

TEST(ConfigClusterTest, WrongFieldsAreRefusedByLineAndName) {
  EXPECT_EQ(ClusterRefusal("cluster:\n  name: a/b\n"),
            "t.yaml:2: cluster.name: must be 1 to 200 characters of a-z, A-Z, "
            "0-9, '.', '_' and '-'");
  EXPECT_THAT(ClusterRefusal(
                  absl::StrCat("cluster: {name: ", std::string(201, 'a'), "}")),
              HasSubstr("cluster.name: must be 1 to 200 characters"));
  EXPECT_THAT(ClusterRefusal("cluster: {name: a, node: 'x y'}"),
              HasSubstr("cluster.node: must be 1 to 200 characters"));
  EXPECT_EQ(ClusterRefusal("cluster: {lease: 199ms}"),
            "t.yaml:1: cluster.lease: must be from 200ms to 1m, got 199ms");
  EXPECT_EQ(ClusterRefusal("cluster: {lease: 2s, failure_timeout: 3s}"),
            "t.yaml:1: cluster.failure_timeout: must be at least twice "
            "cluster.lease, 4s, got 3s");
  EXPECT_EQ(ClusterRefusal("cluster: {failure_timeout: 601s}"),
            "t.yaml:1: cluster.failure_timeout: must be from 400ms to 10m, got "
            "10m1s");
  EXPECT_EQ(ClusterRefusal("cluster: {max_clock_skew: 9ms}"),
            "t.yaml:1: cluster.max_clock_skew: must be from 10ms to 1h, got "
            "9ms");
  EXPECT_EQ(ClusterRefusal("cluster: {advertise: '0.0.0.0:7171'}"),
            "t.yaml:1: cluster.advertise: must be an address that clients can "
            "connect to");
  EXPECT_EQ(ClusterRefusal("cluster: {advertise: 'a:0'}"),
            "t.yaml:1: cluster.advertise: must have a port from 1 to 65535");
  EXPECT_EQ(
      ClusterRefusal("cluster:\n  kafka:\n    brokers:\n    - a:1\n    - b\n"),
      "t.yaml:5: cluster.kafka.brokers[1]: \"b\" has no port: write host:port, "
      "as 127.0.0.1:7171, or unix:/path");
  EXPECT_EQ(ClusterRefusal("cluster: {name: a}\njournal: {directory: b}\n"),
            "t.yaml:1: cluster.name: is set beside journal.directory: a node "
            "of a cluster keeps its journal in Kafka; remove one of them");
}

TEST(ConfigClusterTest, PropertiesOnWhichSafetyRestsAreRefused) {
  for (const char* name : {"acks", "enable.idempotence", "isolation.level",
                           "message.timeout.ms", "bootstrap.servers"}) {
    EXPECT_EQ(
        ClusterRefusal(absl::StrCat(
            "cluster:\n  kafka:\n    properties:\n      ", name, ": 1")),
        absl::StrCat("t.yaml:4: cluster.kafka.properties[", name,
                     "]: cannot be set: the server sets it, and another value "
                     "could lose acknowledged writes"));
  }
  EXPECT_THAT(
      ClusterRefusal("cluster: {kafka: {properties: {sasl.password: a}}}"),
      HasSubstr("cluster.kafka.properties[sasl.password]: is a secret"));
  EXPECT_THAT(
      ClusterRefusal("cluster: {kafka: {property_files: {retries: a}}}"),
      HasSubstr("cluster.kafka.property_files[retries]: cannot be set"));
  EXPECT_THAT(
      ClusterRefusal("cluster: {kafka: {properties: {a: b}, property_files: "
                     "{a: c}}}"),
      HasSubstr("cluster.kafka.property_files[a]: is also in "
                "cluster.kafka.properties: remove one"));
  EXPECT_THAT(
      ClusterRefusal("cluster: {kafka: {properties: {a: b, a: c}}}"),
      HasSubstr("cluster.kafka.properties[a]: given twice: keep one of them"));
  EXPECT_THAT(ClusterRefusal("cluster: {kafka: {properties: [a]}}"),
              HasSubstr("expected names, as \"name: value\""));
}

TEST(ConfigClusterTest, PropertiesAreReadFromTheirFiles) {
  const std::string path = testing::TempDir() + "/config_cluster_secret";
  std::ofstream(path) << "sec\nret\r\n";
  config::v1::KafkaConfig kafka =
      ParsedCluster(
          absl::StrCat("cluster: {kafka: {properties: {security.protocol: "
                       "sasl_ssl}, property_files: {sasl.password: ",
                       path, "}}}"))
          .kafka();
  const auto read = ReadKafkaProperties(kafka);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(*read, ElementsAre(Pair("sasl.password", "sec\nret"),
                                 Pair("security.protocol", "sasl_ssl")));

  (*kafka.mutable_property_files())["sasl.password"] = path + ".missing";
  const absl::Status missing = ReadKafkaProperties(kafka).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr(absl::StrCat(
                  "cluster.kafka.property_files[sasl.password]: ", path,
                  ".missing: cannot be read")));
}

TEST(ConfigClusterTest, WhatIsWrittenIsReadBack) {
  const auto config = ParseConfig(
      "cluster: {name: eu, node: n, kafka: {brokers: ['a:1'], properties: {b: "
      "'true', a: '7'}}}",
      "t.yaml");
  ASSERT_TRUE(config.ok()) << config.status();
  const std::string yaml = ProtoToYaml(*config);
  EXPECT_THAT(yaml, HasSubstr("    properties:\n"
                              "      a: 7\n"
                              "      b: true\n"));
  const auto again = ParseConfig(yaml, "again.yaml");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ProtoToYaml(*again), yaml);
}

TEST(ConfigClusterTest, ItsDurableNamespacesAreReplicated) {
  const auto check = [](const char* cluster, const char* durability) {
    return CheckNamespaces(
        *ParseConfig(absl::StrCat(cluster,
                                  "namespaces: [{name: a, options: "
                                  "{durability: ",
                                  durability, "}}]"),
                     "t.yaml"));
  };
  EXPECT_TRUE(check("cluster: {name: eu}\n", "replicated").ok());
  EXPECT_TRUE(check("cluster: {name: eu}\n", "memory").ok());
  EXPECT_EQ(check("cluster: {name: eu}\n", "sync").message(),
            "namespace \"a\": durability must be replicated or memory: a node "
            "of a cluster has no journal on its disk");
  EXPECT_EQ(check("", "replicated").message(),
            "namespace \"a\": durability replicated needs a cluster: set "
            "cluster.name and cluster.kafka.brokers, or start the server with "
            "--cluster NAME and --kafka-brokers LIST");
}

TEST(ConfigClusterTest, FlagsMakeANode) {
  Flags flags = NodeFlags();
  flags.node = "n1";
  flags.listen = {"127.0.0.1:8000", "0.0.0.0:9000"};
  flags.allow_plaintext = true;
  flags.kafka_brokers = {"a:1", "b:2"};
  flags.cluster_allow_unsafe = true;
  auto config = ConfigFromFlags(flags);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().name(), "eu");
  EXPECT_EQ(config->cluster().node(), "n1");
  EXPECT_EQ(config->cluster().advertise(), "127.0.0.1:8000");
  EXPECT_TRUE(config->cluster().allow_unsafe());
  EXPECT_THAT(config->cluster().kafka().brokers(), ElementsAre("a:1", "b:2"));

  flags.advertise = "cache-1:8000";
  config = ConfigFromFlags(flags);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().advertise(), "cache-1:8000");
}

TEST(ConfigClusterTest, TheAdvertisedDefaultGoesWithTheListener) {
  const std::string path = testing::TempDir() + "/config_cluster.yaml";
  std::ofstream(path) << "cluster: {name: eu, kafka: {brokers: ['a:1']}}\n";
  Flags flags;
  flags.config = path;
  flags.listen = {"127.0.0.1:8000"};
  const auto config = ConfigFromFlags(flags);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->cluster().advertise(), "127.0.0.1:8000");
}

TEST(ConfigClusterTest, WhatANodeNeedsMayComeFromFileOrFlag) {
  Flags flags = NodeFlags();
  flags.kafka_brokers.clear();
  EXPECT_EQ(FlagsRefusal(flags),
            "command line: cluster.kafka.brokers: is empty: name one or more "
            "brokers of Kafka, as host:port (--kafka-brokers LIST)");
  const std::string path = testing::TempDir() + "/config_cluster_wild.yaml";
  std::ofstream(path)
      << "listeners: [{address: '[::]:7171', allow_plaintext: true}]\n"
         "cluster: {name: eu, kafka: {brokers: ['a:1']}}\n";
  flags = Flags();
  flags.config = path;
  EXPECT_EQ(FlagsRefusal(flags),
            path +
                ": cluster.advertise: is empty, and clients cannot connect to "
                "the first listener's address, [::]:7171: set the host:port at "
                "which they reach this node (--advertise ADDRESS)");
  flags.advertise = "cache-1:7171";
  EXPECT_TRUE(ConfigFromFlags(flags).ok());

  flags = Flags();
  flags.node = "n1";
  EXPECT_THAT(FlagsRefusal(flags),
              HasSubstr("cluster.name: is empty, and other fields of cluster "
                        "are set"));
  flags = NodeFlags();
  flags.journal = "journal";
  EXPECT_THAT(FlagsRefusal(flags),
              HasSubstr("is set beside journal.directory"));
}

}  // namespace
}  // namespace timecache::server

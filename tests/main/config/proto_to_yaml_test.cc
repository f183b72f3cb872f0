#include <string>

#include "gtest/gtest.h"
#include "server/api/proto_to_text.h"
#include "server/api/yaml_to_proto.h"
#include "server/main/config/config.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {
namespace {

template <typename M>
void ExpectSurvivesYaml(const M& message) {
  const std::string yaml = ProtoToYaml(message);
  M read;
  const absl::Status status = YamlToProto(yaml, "t.yaml", &read);
  ASSERT_TRUE(status.ok()) << status << "\n" << yaml;
  EXPECT_EQ(read.SerializeAsString(), message.SerializeAsString()) << yaml;
}

TEST(ProtoToYamlTest, WritesAsPeopleDo) {
  EXPECT_EQ(ProtoToYaml(DefaultConfig()),
            "listeners:\n"
            "  - address: 127.0.0.1:7171\n"
            "    allow_plaintext: false\n"
            "limits:\n"
            "  max_namespaces: 1024\n"
            "  max_entries: 0\n"
            "  max_bytes: 0\n"
            "  max_watchers: 10000\n"
            "  max_connections: 10000\n"
            "  max_calls_per_connection: 1000\n"
            "  max_connection_age: 0s\n"
            "  max_call_duration: 1m\n"
            "  max_new_connections_per_second: 100\n"
            "  response_timeout: 30s\n"
            "namespaces:\n"
            "  - name: default\n"
            "log:\n"
            "  level: info\n"
            "  format: text\n"
            "  slow_call: 100ms\n"
            "grace_period: 10s\n"
            "access:\n"
            "  file: \"\"\n"
            "http:\n"
            "  address: \"\"\n"
            "health_address: \"\"\n"
            "debug:\n"
            "  reflection: true\n"
            "drain_delay: 0s\n"
            "journal:\n"
            "  directory: \"\"\n"
            "  reserve_bytes: 134217728\n"
            "  max_clock_lead: 366d\n"
            "stall_grace: 500ms\n"
            "cluster:\n"
            "  name: \"\"\n"
            "  node: \"\"\n"
            "  advertise: \"\"\n"
            "  kafka:\n"
            "    {}\n"
            "  lease: 1s\n"
            "  failure_timeout: 2s\n"
            "  max_clock_skew: 500ms\n"
            "  allow_unsafe: false\n"
            "  reads: lease\n"
            "  forward_calls: false\n"
            "  peer_principal: \"\"\n"
            "  peer_token_file: \"\"\n"
            "  peer_ca_file: \"\"\n"
            "default_partitions: 1\n");
}

TEST(ProtoToYamlTest, WhatIsWrittenIsReadBack) {
  ExpectSurvivesYaml(config::v1::ServerConfig());
  ExpectSurvivesYaml(DefaultConfig());
  config::v1::ServerConfig config = DefaultConfig();
  config::v1::NamespaceConfig& sessions = *config.add_namespaces();
  sessions.set_name("true");
  sessions.mutable_options()->mutable_ttl()->set_nanos(1'500'000);
  sessions.mutable_options()->set_sliding(false);
  sessions.mutable_options()->set_max_bytes(UINT64_MAX);
  sessions.mutable_options()->set_limit_policy(v1::LIMIT_POLICY_EVICT_OLDEST);
  config.add_namespaces()->mutable_options();
  for (const char* text :
       {"~", "null", "", " a: b #c", "\"quoted\"", "two\nlines", "7"}) {
    config.add_namespaces()->set_name(text);
  }
  ExpectSurvivesYaml(config);
}

}  // namespace
}  // namespace timecache::server

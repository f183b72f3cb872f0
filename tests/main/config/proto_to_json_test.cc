#include "gtest/gtest.h"
#include "server/api/proto_to_text.h"
#include "server/main/config/config.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {
namespace {

TEST(ProtoToJsonTest, WritesAsTheConfigurationDoes) {
  v1::NamespaceOptions options;
  options.mutable_ttl()->set_seconds(90);
  options.set_sliding(true);
  options.set_max_bytes(uint64_t{1} << 60);
  options.set_limit_policy(v1::LIMIT_POLICY_EVICT_OLDEST);
  options.set_dead_letter_namespace("dead \"ones\"");
  EXPECT_EQ(ProtoToJson(options),
            R"({"ttl":"1m30s","sliding":true,"max_bytes":1152921504606846976,)"
            R"("limit_policy":"evict_oldest",)"
            R"("dead_letter_namespace":"dead \"ones\""})");
}

TEST(ProtoToJsonTest, ListsAndMessagesNest) {
  config::v1::ServerConfig config;
  config.add_listeners()->set_address("a:1");
  config.add_listeners()->set_address("b:1");
  config.mutable_limits()->set_max_watchers(7);
  EXPECT_EQ(ProtoToJson(config),
            R"({"listeners":[{"address":"a:1"},{"address":"b:1"}],)"
            R"("limits":{"max_watchers":7}})");
  EXPECT_EQ(ProtoToJson(config::v1::ServerConfig()), "{}");
}

}  // namespace
}  // namespace timecache::server

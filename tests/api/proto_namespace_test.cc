#include "server/api/proto_namespace.h"

#include <limits>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/expect_field.h"

namespace timecache::server {
namespace {

using ::testing::HasSubstr;

TEST(ConvertOptions, UnsetFieldsStay) {
  NamespaceOptions options;
  options.ttl_us = 77'000;
  options.sliding = true;
  options.limit_policy = LimitPolicy::kEvictOldest;
  v1::NamespaceOptions change;
  change.set_max_entries(5);
  ASSERT_TRUE(ApplyOptions(change, &options).ok());
  EXPECT_EQ(options.ttl_us, 77'000);
  EXPECT_TRUE(options.sliding);
  EXPECT_EQ(options.limit_policy, LimitPolicy::kEvictOldest);
  EXPECT_EQ(options.max_entries, 5);
}

TEST(ConvertOptions, ThereAndBackIsTheSame) {
  NamespaceOptions options;
  options.ttl_us = 1'234'567;
  options.num_buckets = 3;
  options.max_ttl_us = kMaxTtlUs;
  options.sliding = true;
  options.max_entries = 11;
  options.max_bytes = 12;
  options.limit_policy = LimitPolicy::kEvictOldest;
  options.max_value_bytes = 13;
  options.retention_us = 0;
  options.retention_bytes = kMaxRetentionBytes;
  options.num_shards = 256;
  options.num_partitions = 64;
  options.dead_letter_namespace = "dead";
  options.durability = NamespaceDurability::kSync;
  options.restart_policy = RestartPolicy::kPause;
  v1::NamespaceOptions message;
  SetOptions(options, &message);
  const NamespaceOptions back = *NewOptions(message);
  v1::NamespaceOptions again;
  SetOptions(back, &again);
  EXPECT_EQ(again.SerializeAsString(), message.SerializeAsString());
  EXPECT_EQ(back.ttl_us, options.ttl_us);
  EXPECT_EQ(back.retention_us, 0);
  EXPECT_EQ(back, options);
  EXPECT_EQ(back.retention_bytes, kMaxRetentionBytes);
  EXPECT_EQ(back.dead_letter_namespace, "dead");
  EXPECT_EQ(back.durability, NamespaceDurability::kSync);
  EXPECT_EQ(back.restart_policy, RestartPolicy::kPause);
  v1::NamespaceOptions none;
  none.set_dead_letter_namespace("");
  ASSERT_TRUE(ApplyOptions(none, &options).ok());
  EXPECT_EQ(options.dead_letter_namespace, "");
}

TEST(ConvertOptions, EachDurabilityIsOneOfTheEngines) {
  const std::pair<v1::Durability, NamespaceDurability> kAll[] = {
      {v1::DURABILITY_MEMORY, NamespaceDurability::kMemory},
      {v1::DURABILITY_ASYNC, NamespaceDurability::kAsync},
      {v1::DURABILITY_SYNC, NamespaceDurability::kSync},
      {v1::DURABILITY_REPLICATED, NamespaceDurability::kReplicated}};
  for (const auto& [message, engine] : kAll) {
    v1::NamespaceOptions from;
    from.set_durability(message);
    EXPECT_EQ(NewOptions(from)->durability, engine);
    v1::NamespaceOptions to;
    SetOptions(*NewOptions(from), &to);
    EXPECT_EQ(to.durability(), message);
  }
  EXPECT_EQ(NewOptions({})->durability, NamespaceDurability::kMemory);
}

TEST(ConvertOptions, AsyncAndSyncChangeIntoEachOtherAndNotIntoMemory) {
  const auto change = [](v1::Durability to, NamespaceOptions* options) {
    v1::NamespaceOptions from;
    from.set_durability(to);
    return ChangeOptions(from, options);
  };
  NamespaceOptions options;
  options.durability = NamespaceDurability::kAsync;
  EXPECT_TRUE(change(v1::DURABILITY_SYNC, &options).ok());
  EXPECT_EQ(options.durability, NamespaceDurability::kSync);
  EXPECT_TRUE(change(v1::DURABILITY_ASYNC, &options).ok());
  EXPECT_EQ(options.durability, NamespaceDurability::kAsync);
  const absl::Status to_memory = change(v1::DURABILITY_MEMORY, &options);
  test::ExpectField(to_memory, "durability");
  EXPECT_THAT(std::string(to_memory.message()),
              HasSubstr("fixed at creation, to async or sync"));
  for (const v1::Durability to : {v1::DURABILITY_ASYNC, v1::DURABILITY_SYNC}) {
    NamespaceOptions in_memory;
    test::ExpectField(change(to, &in_memory), "durability");
  }
}

TEST(ConvertOptions, MaxTtlGrowsWithTtlWhereItIsNotSet) {
  v1::NamespaceOptions from;
  from.mutable_ttl()->set_seconds(86'400 * 30);
  EXPECT_EQ(NewOptions(from)->max_ttl_us, NewOptions(from)->ttl_us);
  from.mutable_max_ttl()->set_seconds(1);
  test::ExpectField(Validate(*NewOptions(from)), "max_ttl");
}

TEST(ConvertOptions, NumbersThatDoNotFitAreRefused) {
  const uint64_t huge = std::numeric_limits<uint64_t>::max();
  v1::NamespaceOptions from;
  from.set_max_entries(huge);
  test::ExpectField(NewOptions(from).status(), "max_entries");
  from.Clear();
  from.set_max_bytes(huge);
  test::ExpectField(NewOptions(from).status(), "max_bytes");
  from.Clear();
  from.set_event_retention_bytes(huge);
  test::ExpectField(NewOptions(from).status(), "event_retention_bytes");
  from.Clear();
  from.set_num_buckets(std::numeric_limits<uint32_t>::max());
  test::ExpectField(NewOptions(from).status(), "num_buckets");
  from.Clear();
  from.set_num_shards(std::numeric_limits<uint32_t>::max());
  test::ExpectField(NewOptions(from).status(), "num_shards");
  from.Clear();
  from.set_limit_policy(static_cast<v1::LimitPolicy>(9));
  test::ExpectField(NewOptions(from).status(), "limit_policy");
  from.Clear();
  from.set_durability(static_cast<v1::Durability>(5));
  test::ExpectField(NewOptions(from).status(), "durability");
}

TEST(ConvertGroup, OptionsThereAndBackAreTheSameAndUnsetOnesStay) {
  const GroupOptions options = {1'234'567, 3, int64_t{1} << 40};
  v1::GroupOptions message;
  SetOptions(options, &message);
  GroupOptions back;
  ASSERT_TRUE(ApplyOptions(message, &back).ok());
  EXPECT_EQ(back.ack_timeout_us, options.ack_timeout_us);
  EXPECT_EQ(back.max_attempts, options.max_attempts);
  EXPECT_EQ(back.max_backlog_bytes, options.max_backlog_bytes);
  v1::GroupOptions change;
  change.set_max_attempts(9);
  ASSERT_TRUE(ApplyOptions(change, &back).ok());
  EXPECT_EQ(back.ack_timeout_us, options.ack_timeout_us);
  EXPECT_EQ(back.max_attempts, 9);
  EXPECT_EQ(back.max_backlog_bytes, options.max_backlog_bytes);
}

TEST(ConvertGroup, NumbersThatDoNotFitAreRefused) {
  GroupOptions options;
  v1::GroupOptions from;
  from.set_max_attempts(std::numeric_limits<uint32_t>::max());
  test::ExpectField(ApplyOptions(from, &options), "max_attempts");
  from.Clear();
  from.set_max_backlog_bytes(std::numeric_limits<uint64_t>::max());
  test::ExpectField(ApplyOptions(from, &options), "max_backlog_bytes");
  from.Clear();
  from.mutable_ack_timeout()->set_nanos(-1'000'000'000);
  test::ExpectField(ApplyOptions(from, &options), "ack_timeout");
}

TEST(ConvertGroup, EveryStatisticHasAFieldOfItsOwn) {
  GroupStatistics from;
  from.members = 1;
  from.backlog = 2;
  from.backlog_bytes = 3;
  from.in_flight = 4;
  from.delivered = 6;
  from.redelivered = 7;
  from.acked = 8;
  from.nacked = 9;
  from.put_back = 10;
  from.timed_out = 11;
  from.dead_lettered = 12;
  from.dead_letter_failures = 13;
  from.lost = 14;
  from.unresponsive_members = 15;
  from.dead_letters_dropped = 16;
  from.in_flight_bytes = 17;
  from.dead_letters_denied = 18;
  from.returned = 20;
  from.extended = 21;
  from.suspects = 22;
  from.terminated = 23;
  from.fetched = 24;
  v1::GroupStatistics to;
  SetStatistics(from, &to);
  // By number, as every field has the value of its own.
  const google::protobuf::Descriptor& type = *to.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    if (field.message_type() != nullptr) continue;
    EXPECT_EQ(to.GetReflection()->GetUInt64(to, &field),
              static_cast<uint64_t>(field.number()))
        << field.name();
  }
  EXPECT_FALSE(to.has_oldest_unsettled());
  EXPECT_FALSE(to.has_unused_since());
  from.oldest_unsettled_us = 1'500'000;
  from.unused_since_us = 2'500'000;
  SetStatistics(from, &to);
  EXPECT_EQ(to.unused_since().seconds(), 2);
  EXPECT_EQ(to.oldest_unsettled().seconds(), 1);
  EXPECT_EQ(to.oldest_unsettled().nanos(), 500'000'000);
}

}  // namespace
}  // namespace timecache::server

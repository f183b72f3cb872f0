// What a namespace is, in a record of the journal.

#include "server/durable/map_record.h"

#include <string>

#include "gtest/gtest.h"

namespace timecache::server {
namespace {

// No number is another one's, or its default.
MapDescription Described() {
  MapDescription map;
  map.name = "sessions";
  map.origin.first_event = 3;
  map.origin.journaled = true;
  map.origin.hash_seed = UINT64_MAX;
  map.origin.log_id = 7;
  map.options.ttl_us = 5'000'000;
  map.options.num_buckets = 6;
  map.options.max_ttl_us = 7'000'000;
  map.options.sliding = true;
  map.options.max_entries = 8;
  map.options.max_bytes = 9;
  map.options.limit_policy = LimitPolicy::kEvictOldest;
  map.options.max_value_bytes = 10;
  map.options.retention_us = 11;
  map.options.retention_bytes = 12 << 20;
  map.options.num_shards = 32;
  map.options.dead_letter_namespace = "dead";
  map.options.max_operations_per_second = 13;
  map.options.max_backlog_bytes = 14 << 20;
  map.options.unused_group_ttl_us = 15'000'000;
  map.options.durability = NamespaceDurability::kSync;
  map.options.restart_policy = RestartPolicy::kPause;
  map.options.max_life_us = 22'000'000;
  map.options.idempotency_window_us = 23'000'000;
  map.options.idempotency_max_ids = 24'000;
  map.options.change_retention_us = 25'000'000;
  map.options.change_retention_bytes = 26 << 20;
  map.counts = {16, 17, 18};
  map.origin.fork = {UINT64_MAX - 1, 19, 20, -21};
  return map;
}

TEST(MapRecordTest, WhatIsReadIsWhatWasWritten) {
  const std::string bytes = EncodeMap(MapRecordKind::kWalkEnds, Described());
  const auto record = ReadMapRecord(bytes);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->kind, MapRecordKind::kWalkEnds);
  EXPECT_EQ(record->log_id, 7u);
  const auto map = DecodeMap(*record);
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->name, "sessions");
  EXPECT_EQ(map->options.dead_letter_namespace, "dead");
  EXPECT_TRUE(map->origin.journaled);
  // All numbers at once.
  EXPECT_EQ(EncodeMap(MapRecordKind::kWalkEnds, *map), bytes);
  EXPECT_EQ(map->options.num_shards, 32);
  EXPECT_EQ(map->counts.kills, 18u);
  EXPECT_EQ(map->origin.fork.from_id, 19u);
  EXPECT_EQ(map->origin.fork.watermark_us, -21);
}

// A description of fewer numbers, from before there were more.
TEST(MapRecordTest, AnOptionThatIsMissingHasItsDefault) {
  std::string bytes = EncodeMap(MapRecordKind::kCreated, Described());
  constexpr size_t kMissing = 3;
  bytes[9] = static_cast<char>(bytes[9] - static_cast<char>(kMissing));
  const size_t last = 10 + static_cast<size_t>(bytes[9]) * sizeof(int64_t);
  bytes.erase(last, kMissing * sizeof(int64_t));
  const auto map = DecodeMap(*ReadMapRecord(bytes));
  ASSERT_TRUE(map.ok()) << map.status();
  EXPECT_EQ(map->options.change_retention_us, 0);
  EXPECT_EQ(map->options.change_retention_bytes, 64 << 20);
  EXPECT_EQ(map->options.idempotency_max_ids, 100'000);
  EXPECT_EQ(map->options.idempotency_window_us, 23'000'000);
  EXPECT_EQ(map->options.restart_policy, RestartPolicy::kPause);
  EXPECT_EQ(map->options.durability, NamespaceDurability::kSync);
  EXPECT_EQ(map->name, "sessions");
}

TEST(MapRecordTest, ATimeSkipIsReadAsItWasWritten) {
  const std::string bytes = EncodeTimeSkip(7, {5, 1'000'000});
  const auto record = ReadMapRecord(bytes);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->kind, MapRecordKind::kTimeSkip);
  EXPECT_EQ(record->log_id, 7u);
  const auto skip = DecodeTimeSkip(*record);
  ASSERT_TRUE(skip.ok()) << skip.status();
  EXPECT_EQ(skip->from_us, 5);
  EXPECT_EQ(skip->to_us, 1'000'000);
  for (const std::string& wrong :
       {bytes + "x", bytes.substr(0, bytes.size() - 1),
        EncodeTimeSkip(7, {5, 4}), EncodeTimeSkip(7, {-1, 4})}) {
    EXPECT_TRUE(
        absl::IsDataLoss(DecodeTimeSkip(*ReadMapRecord(wrong)).status()));
  }
}

TEST(MapRecordTest, ADowntimeIsASkipWithoutTheEntries) {
  const TimeSkip downtime = {5, 1'000'000, false};
  const std::string bytes = EncodeTimeSkip(7, downtime);
  const auto record = ReadMapRecord(bytes);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->kind, MapRecordKind::kDowntime);
  const auto skip = DecodeTimeSkip(*record);
  ASSERT_TRUE(skip.ok()) << skip.status();
  EXPECT_EQ(skip->to_us, 1'000'000);
  EXPECT_FALSE(skip->entries);
}

TEST(MapRecordTest, ACheckpointMarkIsReadAsItWasWritten) {
  CheckpointMark mark;
  mark.from = {0, 17, uint64_t{1} << 60};
  mark.at_us = 1'000'000;
  mark.place = {CheckpointPlace::Phase::kGroups,
                {3, 70'000},
                uint64_t{1} << 50,
                {true, "workers", 12}};
  const std::string bytes = EncodeCheckpoint(7, mark);
  const auto record = ReadMapRecord(bytes);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->kind, MapRecordKind::kCheckpoint);
  const auto read = DecodeCheckpoint(*record);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->from, mark.from);
  EXPECT_EQ(read->at_us, mark.at_us);
  EXPECT_EQ(read->place.phase, mark.place.phase);
  EXPECT_EQ(read->place.entries.tag, 70'000u);
  EXPECT_EQ(read->place.groups.group, "workers");
  EXPECT_EQ(EncodeCheckpoint(7, *read), bytes);
  for (size_t size = 9; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const auto other = DecodeCheckpoint(*ReadMapRecord(cut));
    if (other.ok()) {
      // Positions are missing.
      EXPECT_LT(other->from.size(), 3u);
    } else {
      EXPECT_TRUE(absl::IsDataLoss(other.status()));
    }
  }
}

TEST(MapRecordTest, WhatIsCutOffOrLongerIsDataLoss) {
  const std::string bytes = EncodeMap(MapRecordKind::kCreated, Described());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto record = ReadMapRecord(absl::string_view(bytes).substr(0, size));
    EXPECT_TRUE(absl::IsDataLoss(record.ok() ? DecodeMap(*record).status()
                                             : record.status()))
        << size;
  }
  const std::string longer = bytes + "x";
  EXPECT_TRUE(absl::IsDataLoss(DecodeMap(*ReadMapRecord(longer)).status()));
}

TEST(MapRecordTest, WhatANewerVersionWroteIsDataLoss) {
  std::string kind = EncodeMap(MapRecordKind::kCreated, Described());
  kind[0] = 12;
  EXPECT_TRUE(absl::IsDataLoss(ReadMapRecord(kind).status()));
  // More numbers than there are, and options that cannot be.
  std::string more = EncodeMap(MapRecordKind::kCreated, Described());
  ++more[9];
  EXPECT_TRUE(absl::IsDataLoss(DecodeMap(*ReadMapRecord(more)).status()));
  MapDescription wrong = Described();
  wrong.options.num_shards = 33;
  const std::string shards = EncodeMap(MapRecordKind::kCreated, wrong);
  EXPECT_TRUE(absl::IsDataLoss(DecodeMap(*ReadMapRecord(shards)).status()));
}

TEST(MapRecordTest, TheEndOfARestoreHasItsTime) {
  const std::string bytes = EncodeRestoreEnds(-5);
  const auto record = ReadMapRecord(bytes);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->kind, MapRecordKind::kRestoreEnds);
  EXPECT_EQ(record->log_id, 0u);
  EXPECT_EQ(*DecodeRestoreEnds(*record), -5);
  EXPECT_TRUE(absl::IsDataLoss(
      DecodeRestoreEnds({MapRecordKind::kRestoreEnds, 0, "1234"}).status()));
}

}  // namespace
}  // namespace timecache::server

#include "server/journal/map_record.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/map/key_hash.h"
#include "server/journal/coding.h"

namespace timecache::server {
namespace {

constexpr size_t kPrefixBytes = 1 + sizeof(uint64_t);

// A description is a count of numbers, the numbers, eight bytes each, and the
// name and the dead letters' map, each its length in two bytes and its bytes.
// Numbers may be added at the end, never removed: one that is missing has its
// default.
using Numbers = std::array<int64_t, 20>;

Numbers NumbersOf(const MapDescription& map) {
  const MapOptions& o = map.options;
  return {static_cast<int64_t>(map.origin.first_event),
          static_cast<int64_t>(map.origin.hash_seed),
          o.ttl_us,
          o.num_buckets,
          o.max_ttl_us,
          o.sliding ? 1 : 0,
          o.max_entries,
          o.max_bytes,
          static_cast<int64_t>(o.limit_policy),
          o.max_value_bytes,
          o.retention_us,
          o.retention_bytes,
          o.num_shards,
          o.max_operations_per_second,
          o.max_backlog_bytes,
          o.unused_group_ttl_us,
          static_cast<int64_t>(o.durability),
          map.counts.watermark_us,
          static_cast<int64_t>(map.counts.next_event),
          static_cast<int64_t>(map.counts.kills)};
}

// Whether they are a description's.
bool SetNumbers(const Numbers& from, MapDescription* map) {
  MapOptions& o = map->options;
  map->origin.first_event = static_cast<uint64_t>(from[0]);
  map->origin.hash_seed = static_cast<uint64_t>(from[1]);
  o.ttl_us = from[2];
  o.num_buckets = static_cast<int>(from[3]);
  o.max_ttl_us = from[4];
  o.sliding = from[5] != 0;
  o.max_entries = from[6];
  o.max_bytes = from[7];
  o.limit_policy = static_cast<LimitPolicy>(from[8]);
  o.max_value_bytes = from[9];
  o.retention_us = from[10];
  o.retention_bytes = from[11];
  o.num_shards = static_cast<int>(from[12]);
  o.max_operations_per_second = from[13];
  o.max_backlog_bytes = from[14];
  o.unused_group_ttl_us = from[15];
  o.durability = static_cast<MapDurability>(from[16]);
  map->counts.watermark_us = from[17];
  map->counts.next_event = static_cast<uint64_t>(from[18]);
  map->counts.kills = static_cast<uint64_t>(from[19]);
  return from[8] >= 0 &&
         from[8] <= static_cast<int64_t>(LimitPolicy::kEvictOldest) &&
         from[16] >= 0 &&
         from[16] <= static_cast<int64_t>(MapDurability::kSync);
}

void PutText(absl::string_view text, std::string* to) {
  PutNumber(to, static_cast<uint16_t>(text.size()));
  to->append(text.data(), text.size());
}

bool TakeText(absl::string_view* from, std::string* text) {
  if (from->size() < sizeof(uint16_t)) return false;
  const auto size = NumberAt<uint16_t>(*from, 0);
  from->remove_prefix(sizeof(uint16_t));
  if (from->size() < size) return false;
  *text = std::string(from->substr(0, size));
  from->remove_prefix(size);
  return true;
}

absl::Status NoDescription() {
  return absl::DataLossError(
      "a record of the journal is no namespace's, or a newer version's");
}

}  // namespace

std::string MapRecordPrefix(MapRecordKind kind, uint64_t log_id) {
  std::string prefix(1, static_cast<char>(kind));
  PutNumber(&prefix, log_id);
  return prefix;
}

std::string EncodeMap(MapRecordKind kind, const MapDescription& map) {
  std::string record = MapRecordPrefix(kind, map.origin.log_id);
  const Numbers numbers = NumbersOf(map);
  record.push_back(static_cast<char>(numbers.size()));
  for (const int64_t number : numbers) PutNumber(&record, number);
  PutText(map.name, &record);
  PutText(map.options.dead_letter_map, &record);
  return record;
}

absl::StatusOr<MapRecord> ReadMapRecord(absl::string_view record) {
  if (record.size() < kPrefixBytes) return NoDescription();
  const auto kind = static_cast<uint8_t>(record[0]);
  if (kind < static_cast<uint8_t>(MapRecordKind::kCreated) ||
      kind > static_cast<uint8_t>(MapRecordKind::kChanges)) {
    return absl::DataLossError(
        absl::StrCat("a record of the journal is of the unknown kind ", kind,
                     ": a newer version wrote it"));
  }
  return MapRecord{static_cast<MapRecordKind>(kind),
                   NumberAt<uint64_t>(record, 1), record.substr(kPrefixBytes)};
}

absl::StatusOr<MapDescription> DecodeMap(const MapRecord& record) {
  MapDescription map;
  map.origin.log_id = record.log_id;
  map.origin.journaled = true;
  absl::string_view left = record.body;
  if (left.empty()) return NoDescription();
  const size_t count = static_cast<uint8_t>(left[0]);
  left.remove_prefix(1);
  Numbers numbers = NumbersOf(map);
  if (count > numbers.size() || left.size() < count * sizeof(int64_t)) {
    return NoDescription();
  }
  std::memcpy(numbers.data(), left.data(), count * sizeof(int64_t));
  left.remove_prefix(count * sizeof(int64_t));
  if (!SetNumbers(numbers, &map) || !TakeText(&left, &map.name) ||
      !TakeText(&left, &map.options.dead_letter_map) || !left.empty()) {
    return NoDescription();
  }
  absl::Status status = ValidateNamespaceName(map.name);
  if (status.ok()) status = Validate(map.options);
  if (!status.ok()) {
    return absl::DataLossError(
        absl::StrCat("a record of the journal describes namespace \"", map.name,
                     "\", which cannot be: ", status.message()));
  }
  return map;
}

uint32_t PartitionOf(absl::string_view name, uint32_t partitions) {
  // Constant for ever: where a name is in journals that exist.
  static constexpr uint64_t kSeed = 0;
  return static_cast<uint32_t>(KeyHash(kSeed)(name) % partitions);
}

}  // namespace timecache::server

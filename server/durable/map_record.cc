#include "server/durable/map_record.h"

#include <cstddef>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "server/base/coding.h"
#include "server/engine/store/partitions.h"

namespace timecache::server {
namespace {

constexpr size_t kPrefixBytes = 1 + sizeof(uint64_t);

// A description is a count of numbers, the numbers, eight bytes each, and the
// name and the dead letters' map, each its length in two bytes and its bytes.
// These are the numbers. More may be added at the end, none removed: one that
// is missing has its default.
template <typename Map, typename Visit>
void VisitNumbers(Map* map, Visit visit) {
  visit(&map->origin.first_event);
  visit(&map->origin.hash_seed);
  auto& options = map->options;
  visit(&options.ttl_us);
  visit(&options.num_buckets);
  visit(&options.max_ttl_us);
  visit(&options.sliding);
  visit(&options.max_entries);
  visit(&options.max_bytes);
  visit(&options.limit_policy);
  visit(&options.max_value_bytes);
  visit(&options.retention_us);
  visit(&options.retention_bytes);
  visit(&options.num_shards);
  visit(&options.max_operations_per_second);
  visit(&options.max_backlog_bytes);
  visit(&options.unused_group_ttl_us);
  visit(&options.durability);
  visit(&map->counts.watermark_us);
  visit(&map->counts.next_event);
  visit(&map->counts.kills);
  auto& fork = map->origin.fork;
  visit(&fork.id);
  visit(&fork.from_id);
  visit(&fork.next_event);
  visit(&fork.watermark_us);
  visit(&options.restart_policy);
  visit(&options.max_life_us);
  visit(&options.idempotency_window_us);
  visit(&options.idempotency_max_ids);
  visit(&options.change_retention_us);
  visit(&options.change_retention_bytes);
  // Else left out, as versions before it did not have it.
  if (!std::is_const_v<Map> || options.num_partitions > 1) {
    visit(&options.num_partitions);
  }
}

// Whether the map's description has this many numbers, or more.
bool TakeNumbers(size_t count, absl::string_view* from, MapDescription* map) {
  if (from->size() < count * sizeof(int64_t)) return false;
  size_t taken = 0;
  VisitNumbers(map, [&](auto* number) {
    if (taken == count) return;
    *number = static_cast<std::remove_pointer_t<decltype(number)>>(
        NumberAt<int64_t>(*from, taken++ * sizeof(int64_t)));
  });
  from->remove_prefix(taken * sizeof(int64_t));
  return taken == count;
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

// The journal's checksums fit.
absl::Status NoDescription() {
  return OfNewerVersion("a record of the journal has a form");
}

}  // namespace

absl::Status OfNewerVersion(absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      what,
      " that this version does not know: a newer one wrote it. Start that one, "
      "or restore a backup of before"));
}

std::string MapRecordPrefix(MapRecordKind kind, uint64_t log_id) {
  std::string prefix(1, static_cast<char>(kind));
  PutNumber(&prefix, log_id);
  return prefix;
}

std::string EncodeMap(MapRecordKind kind, const MapDescription& map) {
  std::string record = MapRecordPrefix(kind, map.origin.log_id);
  const size_t at = record.size();
  record.push_back(0);
  VisitNumbers(&map, [&](const auto* number) {
    ++record[at];
    PutNumber(&record, static_cast<int64_t>(*number));
  });
  PutText(map.name, &record);
  PutText(map.options.dead_letter_namespace, &record);
  return record;
}

std::string EncodeTimeSkip(uint64_t log_id, const TimeSkip& skip) {
  std::string record = MapRecordPrefix(
      skip.entries ? MapRecordKind::kTimeSkip : MapRecordKind::kDowntime,
      log_id);
  PutNumber(&record, skip.from_us);
  PutNumber(&record, skip.to_us);
  return record;
}

std::string EncodeCheckpoint(uint64_t log_id, const CheckpointMark& mark) {
  const CheckpointPlace& place = mark.place;
  std::string record = MapRecordPrefix(MapRecordKind::kCheckpoint, log_id);
  PutNumber(&record, mark.at_us);
  PutNumber(&record, static_cast<uint8_t>(place.phase));
  PutNumber(&record, static_cast<uint32_t>(place.entries.shard));
  PutNumber(&record, place.entries.tag);
  PutNumber(&record, place.end_event);
  PutNumber(&record, static_cast<uint8_t>(place.groups.begun ? 1 : 0));
  PutNumber(&record, place.groups.event);
  PutText(place.groups.group, &record);
  for (const uint64_t from : mark.from) PutNumber(&record, from);
  return record;
}

std::string EncodeRestoreEnds(int64_t at_us) {
  std::string record = MapRecordPrefix(MapRecordKind::kRestoreEnds, 0);
  PutNumber(&record, at_us);
  return record;
}

absl::StatusOr<MapRecord> ReadMapRecord(absl::string_view record) {
  if (record.size() < kPrefixBytes) return NoDescription();
  const auto kind = static_cast<uint8_t>(record[0]);
  if (kind < static_cast<uint8_t>(MapRecordKind::kCreated) ||
      kind > static_cast<uint8_t>(MapRecordKind::kRestoreEnds)) {
    return OfNewerVersion(
        absl::StrCat("a record of the journal is of a kind, ", kind, ","));
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
  if (!TakeNumbers(count, &left, &map) || !TakeText(&left, &map.name) ||
      !TakeText(&left, &map.options.dead_letter_namespace) || !left.empty()) {
    return NoDescription();
  }
  absl::Status status = ValidateMapName(map.name);
  if (status.ok()) status = Validate(map.options);
  if (!status.ok()) {
    return absl::DataLossError(
        absl::StrCat("a record of the journal describes namespace \"", map.name,
                     "\", which cannot be: ", status.message()));
  }
  return map;
}

absl::StatusOr<TimeSkip> DecodeTimeSkip(const MapRecord& record) {
  if (record.body.size() != 2 * sizeof(int64_t)) return NoDescription();
  const TimeSkip skip = {NumberAt<int64_t>(record.body, 0),
                         NumberAt<int64_t>(record.body, sizeof(int64_t)),
                         record.kind == MapRecordKind::kTimeSkip};
  if (skip.from_us < 0 || skip.to_us < skip.from_us) return NoDescription();
  return skip;
}

absl::StatusOr<CheckpointMark> DecodeCheckpoint(const MapRecord& record) {
  constexpr size_t kHeadBytes =
      2 * sizeof(uint8_t) + 2 * sizeof(uint32_t) + 3 * sizeof(uint64_t);
  absl::string_view left = record.body;
  if (left.size() < kHeadBytes) return NoDescription();
  const auto take = [&left](auto* number) {
    *number = NumberAt<std::remove_pointer_t<decltype(number)>>(left, 0);
    left.remove_prefix(sizeof(*number));
  };
  CheckpointMark mark;
  CheckpointPlace& place = mark.place;
  uint8_t phase;
  uint8_t begun;
  take(&mark.at_us);
  take(&phase);
  take(&place.entries.shard);
  take(&place.entries.tag);
  take(&place.end_event);
  take(&begun);
  take(&place.groups.event);
  if (phase > static_cast<uint8_t>(CheckpointPlace::Phase::kDone) ||
      place.entries.shard < 0 || begun > 1 ||
      !TakeText(&left, &place.groups.group) ||
      left.size() % sizeof(uint64_t) != 0) {
    return NoDescription();
  }
  place.phase = static_cast<CheckpointPlace::Phase>(phase);
  place.groups.begun = begun == 1;
  while (!left.empty()) take(&mark.from.emplace_back());
  return mark;
}

absl::StatusOr<int64_t> DecodeRestoreEnds(const MapRecord& record) {
  if (record.body.size() != sizeof(int64_t)) return NoDescription();
  return NumberAt<int64_t>(record.body, 0);
}

}  // namespace timecache::server

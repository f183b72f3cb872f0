// The records of maps in a partition of a journal.

#ifndef TIMECACHED_SERVER_JOURNAL_MAPS_MAP_RECORD_H_
#define TIMECACHED_SERVER_JOURNAL_MAPS_MAP_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/namespace_options.h"

namespace timecache::server {

// A partition has the records of the maps whose names fall on it. Each begins
// with a byte for its kind and the id of the map's log, which no two maps
// share: so a deleted map and a later one of the same name are distinct. The
// deletion of the former may come after the creation of the latter.
enum class MapRecordKind : uint8_t {
  // A MapDescription: a new map was created,
  kCreated = 1,
  // it has other options,
  kOptions = 2,
  // all live entries are written again from here on,
  kWalkBegins = 3,
  // to here: see MapReplay::Begin.
  kWalkEnds = 4,
  // It was deleted.
  kDeleted = 5,
  // Its changes: a ChangeRecord.
  kChanges = 6,
  // A TimeSkip: downtime that did not count.
  kTimeSkip = 7,
};

struct MapRecord {
  MapRecordKind kind = MapRecordKind::kChanges;
  uint64_t log_id = 0;
  // The rest, a view into the record.
  absl::string_view body;
};

// The description of a map: `origin` without the source of versions.
struct MapDescription {
  std::string name;
  NamespaceOptions options;
  TimeCacheMap::Origin origin;
  // At the end of a walk.
  MapCounts counts;
};

// The prefix of a record of this kind.
std::string MapRecordPrefix(MapRecordKind kind, uint64_t log_id);
std::string EncodeMap(MapRecordKind kind, const MapDescription& map);
std::string EncodeTimeSkip(uint64_t log_id, const TimeSkip& skip);

// DATA_LOSS: not a valid record, or of a newer version.
absl::StatusOr<MapRecord> ReadMapRecord(absl::string_view record);
absl::StatusOr<MapDescription> DecodeMap(const MapRecord& record);
absl::StatusOr<TimeSkip> DecodeTimeSkip(const MapRecord& record);

// The partition of a map of this name.
uint32_t PartitionOf(absl::string_view name, uint32_t partitions);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_MAPS_MAP_RECORD_H_

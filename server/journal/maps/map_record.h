// The records of maps in a partition of a journal.

#ifndef TIMECACHED_SERVER_JOURNAL_MAPS_MAP_RECORD_H_
#define TIMECACHED_SERVER_JOURNAL_MAPS_MAP_RECORD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/map/options.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {

// A partition has the records of the maps whose names fall on it. Each begins
// with a byte for its kind and the id of the map's log, which no two maps
// share: so a map that was deleted and one of the same name are told apart. The
// end of the former may be behind the creation of the latter.
enum class MapRecordKind : uint8_t {
  // A MapDescription: there is a new map,
  kCreated = 1,
  // it has other options,
  kOptions = 2,
  // all that is live in it is told again from here on,
  kWalkBegins = 3,
  // to here: see MapReplay::Begin.
  kWalkEnds = 4,
  // There is none any more.
  kDeleted = 5,
  // What happened to it: a ChangeRecord.
  kChanges = 6,
  // A TimeSkip: it is after a restart, which time did not count.
  kTimeSkip = 7,
};

struct MapRecord {
  MapRecordKind kind = MapRecordKind::kChanges;
  uint64_t log_id = 0;
  // The rest, a view into the record.
  absl::string_view body;
};

// What a map is made of: `origin` without the source of versions.
struct MapDescription {
  std::string name;
  MapOptions options;
  TimeCacheMap::Origin origin;
  // At the end of a walk.
  MapCounts counts;
};

// What a record of this kind begins with.
std::string MapRecordPrefix(MapRecordKind kind, uint64_t log_id);
std::string EncodeMap(MapRecordKind kind, const MapDescription& map);
std::string EncodeTimeSkip(uint64_t log_id, const TimeSkip& skip);

// DATA_LOSS: nobody wrote this, or a newer version did.
absl::StatusOr<MapRecord> ReadMapRecord(absl::string_view record);
absl::StatusOr<MapDescription> DecodeMap(const MapRecord& record);
absl::StatusOr<TimeSkip> DecodeTimeSkip(const MapRecord& record);

// The partition, of so many, that a map of this name has.
uint32_t PartitionOf(absl::string_view name, uint32_t partitions);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_MAPS_MAP_RECORD_H_

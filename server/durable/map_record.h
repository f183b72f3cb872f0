// The records of maps in a partition of a journal.

#ifndef TIMECACHED_SERVER_DURABLE_MAP_RECORD_H_
#define TIMECACHED_SERVER_DURABLE_MAP_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/groups/consumer_groups.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/scan.h"

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
  // A TimeSkip, with the entries,
  kTimeSkip = 7,
  // and one without.
  kDowntime = 8,
  // A CheckpointMark.
  kCheckpoint = 9,
  // Of no map, its id is 0: the records of another journal follow
  // (restored_records.h),
  kRestoreBegins = 10,
  // to here; in 8 bytes, the time in microseconds. The first process that
  // recovers the journal must give the maps that it has so far other identities
  // (RecoveryOptions::copied).
  kRestoreEnds = 11,
};

// How far a round of the Checkpointer is with a map: what is before this place
// has been written again, and stored.
struct CheckpointPlace {
  // Its entries, its retained events, its groups; then all of it.
  enum class Phase : uint8_t { kEntries, kEvents, kGroups, kDone };

  Phase phase = Phase::kEntries;
  ScanPosition entries = {};
  // The events from this number on have been; after kEvents, the log had none
  // before.
  uint64_t end_event = 0;
  ConsumerGroups::WalkPosition groups = {};
};

// A round that is under way. Records of each partition from before `from` are
// dropped at its end.
struct CheckpointMark {
  std::vector<uint64_t> from;
  CheckpointPlace place;
  // The time. What had died by then is left out of what was written again, and
  // must not live again in a process whose clock is behind.
  int64_t at_us = 0;
};

// A round of the Checkpointer that the last process has not ended.
struct OpenCheckpoint {
  // See CheckpointMark. Empty: there is none.
  std::vector<uint64_t> from;
  // By the ids of the maps' logs; of one that is missing, nothing has been
  // written again.
  absl::flat_hash_map<uint64_t, CheckpointPlace> places;
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
std::string EncodeCheckpoint(uint64_t log_id, const CheckpointMark& mark);
std::string EncodeRestoreEnds(int64_t at_us);

// DATA_LOSS: `what` is of a newer version.
absl::Status OfNewerVersion(absl::string_view what);

// DATA_LOSS: not a valid record, or of a newer version.
absl::StatusOr<MapRecord> ReadMapRecord(absl::string_view record);
absl::StatusOr<MapDescription> DecodeMap(const MapRecord& record);
absl::StatusOr<TimeSkip> DecodeTimeSkip(const MapRecord& record);
absl::StatusOr<CheckpointMark> DecodeCheckpoint(const MapRecord& record);
absl::StatusOr<int64_t> DecodeRestoreEnds(const MapRecord& record);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_MAP_RECORD_H_

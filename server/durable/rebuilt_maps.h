// Rebuilds maps from the records of a journal, on several threads.

#ifndef TIMECACHED_SERVER_DURABLE_REBUILT_MAPS_H_
#define TIMECACHED_SERVER_DURABLE_REBUILT_MAPS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/durable/map_change_log.h"
#include "server/durable/open_checkpoint.h"
#include "server/durable/recovery.h"
#include "server/durable/shared_read.h"
#include "server/engine/map/map_replay.h"
#include "server/engine/registry.h"

namespace timecache::server {

struct RebuiltMap {
  std::shared_ptr<TimeCacheMap> map;
  std::unique_ptr<MapReplay> replay;
  MarkedMap marked = {};
  // The latest description.
  NamespaceOptions options;
  // Whether deaths may be published: since its creation, or the end of a walk.
  bool complete = false;
  // Its deletion was not stored, though a newer one has its name.
  bool ended = false;
  // Restored, and without another identity since: see kRestoreEnds.
  bool copied = false;
  // Records of its partition are missing.
  bool lacks_records = false;
  // From the end of the replay on.
  std::shared_ptr<MapChangeLog> log;

  bool pauses() const {
    return options.restart_policy == RestartPolicy::kPause;
  }
};

// What the threads share.
struct RebuiltMaps {
  RebuiltMaps(const Journal* journal, Registry* registry,
              const RecoveryOptions* options)
      : journal(*journal), registry(*registry), options(*options) {}

  const Journal& journal;
  Registry& registry;
  const RecoveryOptions& options;
  // Read, and to be read.
  std::atomic<uint64_t> records{0};
  std::atomic<uint64_t> records_end{0};
  // Ends all threads.
  std::atomic<bool> failed{false};

  absl::Mutex mu;
  std::vector<RebuiltMap> maps ABSL_GUARDED_BY(mu);
  RecoveryReport report ABSL_GUARDED_BY(mu);
  // The last kRestoreEnds; INT64_MIN: there is none.
  int64_t restored_us ABSL_GUARDED_BY(mu) = INT64_MIN;
  // The first that no map has.
  uint64_t next_version ABSL_GUARDED_BY(mu) = 0;
};

// Adds the maps of these partitions, the `part`th of `read`, to `all`. They
// record nothing, and are not in the registry. Errors as RecoverMaps.
//
// A journal that was salvaged lacks positions. A partition that lacks some is
// read once more, by itself, when all descriptions of its maps are known: each
// map begins with its first record, whether or not its creation or the ends of
// a walk are lost.
absl::Status RebuildMaps(const std::vector<Journal::ReadFrom>& partitions,
                         size_t part, SharedRead* read, RebuiltMaps* all);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_REBUILT_MAPS_H_

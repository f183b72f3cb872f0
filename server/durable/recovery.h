// Rebuilds the maps of a server from its journal.

#ifndef TIMECACHED_SERVER_DURABLE_RECOVERY_H_
#define TIMECACHED_SERVER_DURABLE_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/durable/map_change_log.h"
#include "server/engine/registry.h"

namespace timecache::server {

struct RecoveryProgress {
  // Of the journal, so far and in all; trimmed ones are not counted.
  uint64_t records = 0;
  uint64_t records_end = 0;
};

struct RecoveryOptions {
  // Number of threads that replay a part of the partitions each, beside the
  // caller's, which reads the journal. At least 1.
  int threads = 1;
  // Called before the first record, on the caller's thread, then periodically
  // on any of the threads. May be null.
  std::function<void(const RecoveryProgress&)> progress;
  // Called as often, and after each bounded part of a large record or of many
  // deaths at once; true ends the recovery with CANCELLED. May be null.
  std::function<bool()> cancelled;
  // Called when all that the journal had is replayed, or handed to the threads
  // that do; true: the recovery goes on with what the journal has meanwhile. Null:
  // it ends there. The reader's thread, which may wait in it.
  std::function<bool()> follow;
  // The journal is a copy, and may go on elsewhere, too: from here on the logs
  // of its maps differ from those of the original (LogFork), and so do the
  // versions. That is stored when the call returns; RESOURCE_EXHAUSTED
  // (DISK_FULL): it cannot be.
  bool copied = false;
  // The journal may have lost records that were not synced, as by a power loss:
  // the same for ASYNC maps, which may have published events that the journal
  // does not have.
  bool may_have_lost_power = false;
  // The time at which the downtime ends: read when all maps are rebuilt, as
  // that takes a while, too. Null: there was none. Not owned.
  const Clock* clock = nullptr;
  // How far the clock of the server that wrote the journal was behind this one,
  // at most: the lives that it promised end so much later on this one.
  int64_t clock_behind_us = 0;
  // Called once all maps are rebuilt, and before anything is recorded, with the
  // latest time in the journal (RecoveryReport::last_us): an error ends the
  // recovery, which returns it. May be null.
  std::function<absl::Status(int64_t last_us)> check_time;
  // Most records between two calls of `progress`, and most bytes on one thread.
  uint64_t progress_records = 10'000;
  uint64_t progress_bytes = 1 << 20;
};

struct RecoveryReport {
  uint64_t records = 0;
  uint64_t record_bytes = 0;
  uint64_t namespaces = 0;
  // Live, or dead and unpublished.
  uint64_t entries = 0;
  // Maps whose logs got a new identity.
  uint64_t forked = 0;
  // The latest time in the journal; INT64_MIN if there is none. A map does not
  // go back before its own.
  int64_t last_us = INT64_MIN;
  // Of a journal that was salvaged: how many records are missing, at least;
  uint64_t lost_records = 0;
  // the namespaces that may lack some of theirs, also those of which entries or
  // groups are missing;
  std::vector<std::string> incomplete;
  // and the ids of the logs of those that no record describes any more: they
  // are not there.
  std::vector<uint64_t> unknown;
};

// Adds all maps of the journal to the registry, which has none of their names
// yet and assigns no versions meanwhile; their changes continue in `logs`.
// Downtime that does not count, and a clock that was behind, are recorded and
// stored before this returns: a later recovery does not skip them again. Costs
// as much as the original operations. Memory: the maps, a group of the journal,
// and SharedRead::kQueueBytes for each thread.
//
// A journal that was salvaged lacks records. The rest of its maps continues
// (MapReplay::AllowLosses): a key may have an older value, or none, or exist
// again; cursors and groups count missed events as lost. That holds for all
// maps of a partition that lacks a record.
//
// DATA_LOSS: the journal is damaged, or its records contradict each other;
// names the place and a remedy. RESOURCE_EXHAUSTED: no room on the disk to
// record downtime that does not count. Then only some of the maps may exist,
// and they must not be used.
absl::StatusOr<RecoveryReport> RecoverMaps(MapChangeLogs* logs,
                                           Registry* registry,
                                           const RecoveryOptions& options);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_RECOVERY_H_

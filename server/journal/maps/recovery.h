// Makes the maps of a server again, from its journal.

#ifndef TIMECACHED_SERVER_JOURNAL_MAPS_RECOVERY_H_
#define TIMECACHED_SERVER_JOURNAL_MAPS_RECOVERY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/clock.h"
#include "server/engine/registry.h"
#include "server/journal/maps/map_change_log.h"

namespace timecache::server {

struct RecoveryProgress {
  // Of the journal, so far and in all; trimmed ones are not counted.
  uint64_t records = 0;
  uint64_t records_end = 0;
};

struct RecoveryOptions {
  // Each has a part of the partitions, and passes over the whole journal: at
  // least 1.
  int threads = 1;
  // Told before the first record, on the thread of the call, then now and then
  // on any of the threads. May be null.
  std::function<void(const RecoveryProgress&)> progress;
  // Asked as often; true ends it with CANCELLED. May be null.
  std::function<bool()> cancelled;
  // The journal is a copy (MarkAsCopy): the logs of its maps are from here on
  // others than those of what it was copied from (LogFork), and so are the
  // versions. That is kept when the call returns; RESOURCE_EXHAUSTED
  // (DISK_FULL): it cannot be.
  bool copied = false;
  // A power loss may have taken what was not synced
  // (LocalJournal::may_have_lost_power): the same for maps that are ASYNC,
  // which have told of events that the journal does not have.
  bool may_have_lost_power = false;
  // The time, at which maps go on where restart_policy is kPause: asked when
  // all are made again, as that takes a while, too. Null: they go on where they
  // ended. Not owned.
  const Clock* clock = nullptr;
  // At most so many records lie between two of these, and on one thread so many
  // bytes.
  uint64_t progress_records = 10'000;
  uint64_t progress_bytes = 1 << 20;
};

struct RecoveryReport {
  uint64_t records = 0;
  uint64_t record_bytes = 0;
  uint64_t namespaces = 0;
  // Live, or dead and untold.
  uint64_t entries = 0;
  // Whose logs go on as others.
  uint64_t forked = 0;
  // The latest time that the journal tells of; INT64_MIN if it tells of none. A
  // map does not go back behind its own.
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

// Adds all maps that the journal tells of to the registry, which has none of
// their names yet and gives no versions meanwhile; their changes go on in
// `logs`. Where the time between does not count, that is told and kept before
// this returns: a later recovery does not skip it again. Costs what the
// operations did. Memory: the maps, and a group of the journal for each thread.
//
// A journal that was salvaged lacks records. What is left of its maps goes on
// (MapReplay::AllowLosses): a key may have an older value, or none, or be there
// again; events that are lost count as such, where a cursor or a group misses
// them. That holds for all maps of a partition that lacks a record.
//
// DATA_LOSS: the journal is damaged, or its records contradict each other; says
// where, and what to do. RESOURCE_EXHAUSTED: no room on the disk to tell of
// time that does not count. Then some maps may be there, others not: nobody may
// use them.
absl::StatusOr<RecoveryReport> RecoverMaps(MapChangeLogs* logs,
                                           Registry* registry,
                                           const RecoveryOptions& options);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_MAPS_RECOVERY_H_

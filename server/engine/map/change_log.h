// Makes maps durable: logs of their changes. Implemented on a journal
// (server/durable/map_change_log.h).

#ifndef TIMECACHED_SERVER_ENGINE_MAP_CHANGE_LOG_H_
#define TIMECACHED_SERVER_ENGINE_MAP_CHANGE_LOG_H_

#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/engine/groups/group_change.h"
#include "server/engine/shard/change.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {

class TimeCacheMap;

// All changes of one map.
class MapChangeSink : public ChangeSink, public GroupChangeSink {};

// Stores all changes of one map, so that the map can be rebuilt.
//
// Thread-safe. No call acquires a lock of the map, or waits; but WhenKept may
// write to a file.
class ChangeLog : public MapChangeSink {
 public:
  // Called once: before the call returns, or later on a thread of the log or of
  // another WhenKept, which it must not block. On an error it is unknown
  // whether the reported changes are durable.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // OK, or why a write could not be stored now: RESOURCE_EXHAUSTED (DISK_FULL,
  // JOURNAL_BACKLOG). Reads and deaths go on.
  virtual absl::Status CheckRoom() const = 0;
  // The same for a change that takes little of the disk and lets it be trimmed,
  // such as a settlement: only JOURNAL_BACKLOG.
  virtual absl::Status CheckBacklog() const = 0;

  // Calls `done` once the changes up to this position are stored: at once if
  // they are. A result has the position (Result::position) of the newest change
  // of its key, by its operation or an earlier one: so no client sees a change
  // that a crash could still undo. Without a sync for each commit (ASYNC), reads
  // have none, and writes that of all changes.
  virtual void WhenKept(uint64_t position, Done done) = 0;
  // Whether they are, after an error of that.
  virtual bool IsKept(uint64_t position) const = 0;
  // As WhenKept for reads of all keys.
  virtual void WhenEntriesKept(Done done) = 0;
  // As WhenKept for all reported changes, also of time and groups.
  virtual void WhenAllKept(Done done) = 0;
  // Starts to store the reported changes, without waiting.
  virtual void Flush() = 0;

  // The map has these options now, or is deleted.
  virtual void AppendOptions(const NamespaceOptions& options) = 0;
  virtual void AppendDeleted() = 0;
};

// Creates the change logs of a server's maps. Thread-safe.
class ChangeLogs {
 public:
  virtual ~ChangeLogs() = default;

  // The log of a new journaled map, with the map's description as its first
  // record; the map has not been used yet.
  virtual std::shared_ptr<ChangeLog> Begin(
      const std::shared_ptr<TimeCacheMap>& map) = 0;

  // As ChangeLog::CheckRoom, for a map that does not exist yet.
  virtual absl::Status CheckRoom() const = 0;
  // By which CheckDurability decides what maps may be.
  virtual JournalKind kind() const { return JournalKind::kDisk; }
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_MAP_CHANGE_LOG_H_

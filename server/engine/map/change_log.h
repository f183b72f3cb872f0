// Makes maps durable: logs of their changes. Implemented on a journal
// (server/durable/map_change_log.h).

#ifndef TIMECACHED_SERVER_ENGINE_MAP_CHANGE_LOG_H_
#define TIMECACHED_SERVER_ENGINE_MAP_CHANGE_LOG_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/groups/group_change.h"
#include "server/engine/shard/change.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/operation.h"

namespace timecache::server {

class TimeCacheMap;

// Whether `op` may change something, in a map that is `sliding` or not.
inline bool Writes(const Operation& op, bool sliding) {
  if (op.kind == OpKind::kGet) return op.touch || sliding;
  return op.kind != OpKind::kContains;
}

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

  // Calls `done` once all reported changes of these operations' keys, by them
  // or by earlier operations, are stored: so no client sees a change that a
  // crash could still undo. At once if they are stored already. Without a sync
  // for each commit (ASYNC), reads do not wait, and writes wait for all
  // reported changes; if only reads were `tried`, nothing is waited for.
  enum class Tried { kAll, kReads };
  virtual void WhenKept(absl::Span<const Operation> operations, Tried tried,
                        Done done) = 0;
  // After an error of that: whether the operation waited for nothing, or all
  // that it waited for is stored by now.
  virtual bool IsKept(const Operation& operation) const = 0;
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
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_MAP_CHANGE_LOG_H_

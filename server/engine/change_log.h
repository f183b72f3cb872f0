// What makes maps last: logs of their changes. Implemented on a journal
// (server/journal/maps/map_change_log.h).

#ifndef TIMECACHED_SERVER_ENGINE_CHANGE_LOG_H_
#define TIMECACHED_SERVER_ENGINE_CHANGE_LOG_H_

#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/engine/map/change.h"
#include "server/engine/map/operation.h"
#include "server/engine/map/options.h"

namespace timecache::server {

class TimeCacheMap;

// Whether `op` may change something, in a map that is `sliding` or not.
inline bool Writes(const Operation& op, bool sliding) {
  if (op.kind == OpKind::kGet) return op.touch || sliding;
  return op.kind != OpKind::kContains;
}

// Keeps all changes of one map, so that the same map can be made again.
//
// Thread-safe. No call takes a lock of the map, or waits; but WhenKept may write
// to a file.
class ChangeLog : public ChangeSink {
 public:
  // Called once: before the call returns, or later on a thread of the log or of
  // another WhenKept, which it must not block. An error: it is unknown whether
  // what was told lasts.
  using Done = absl::AnyInvocable<void(absl::Status)>;

  // OK, or why what is written now could not be kept: RESOURCE_EXHAUSTED
  // (DISK_FULL, JOURNAL_BACKLOG). What is read, and what dies, goes on.
  virtual absl::Status CheckRoom() const = 0;

  // `done` once whatever was told about these operations' keys, for them or for
  // others before them, is kept: so nobody sees what a crash could still take
  // back. At once if that is so. Without a sync for each commit (ASYNC), reads
  // do not wait, and what writes waits for all that was told; nothing is waited
  // for if only what reads was `tried`.
  enum class Tried { kAll, kReads };
  virtual void WhenKept(absl::Span<const Operation> operations, Tried tried,
                        Done done) = 0;
  // The same of all that was told.
  virtual void WhenAllKept(Done done) = 0;
  // Begins to keep what was told; nobody waits for it.
  virtual void Flush() = 0;

  // The map has these options now, or is deleted.
  virtual void AppendOptions(const MapOptions& options) = 0;
  virtual void AppendDeleted() = 0;
};

// Makes the change logs of a server's maps. Thread-safe.
class ChangeLogs {
 public:
  virtual ~ChangeLogs() = default;

  // The log of a new map that is journaled, with what the map is as the first
  // that was told; nobody has used the map yet.
  virtual std::shared_ptr<ChangeLog> Begin(
      const std::shared_ptr<TimeCacheMap>& map) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_CHANGE_LOG_H_

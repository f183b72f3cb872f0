// Receives what operations do to a shard's entries, for watches of changes.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_CHANGE_WATCH_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_CHANGE_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "server/engine/store/scan.h"

namespace timecache::server {

// The changes of one atomic batch, in several shards: of one time, and read
// together. Destroyed once its shards have ended it, under their locks.
class AtomicWatch {
 public:
  virtual ~AtomicWatch() = default;
};

// The changes of one shard, in order. Unlike a ChangeSink's they have the whole
// value, and none is of deaths, of a rebuild or of a checkpoint. Called under
// the shard's lock: calls must only copy, and must not call the shard.
class ChangeWatch {
 public:
  virtual ~ChangeWatch() = default;

  // Returns when the shard's changes are to be flushed; kNeverUs: as returned
  // before.
  virtual int64_t Add(const EntryView& change) = 0;
  // All changes so far are handed on; later ones happen after `now_us`.
  virtual void Flush(int64_t now_us) = 0;

  // What is added until EndAtomic, at most so many, belongs to `*batch`, which
  // the first shard of it makes. All its shards begin before there is a change.
  virtual void BeginAtomic(size_t changes,
                           std::unique_ptr<AtomicWatch>* batch) = 0;
  virtual void EndAtomic() = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_CHANGE_WATCH_H_

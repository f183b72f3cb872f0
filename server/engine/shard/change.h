// The changes of a map by operations, kills and time: enough to rebuild the map
// in another process, without a clock.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_CHANGE_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_CHANGE_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "server/engine/shard/record.h"
#include "server/engine/shard/remembered_answers.h"
#include "server/engine/store/event_batch.h"

namespace timecache::server {

// A change of one shard. Records the new state, not the request: applying a
// map's changes in order, some of them repeatedly or not at all, gives the same
// entries, as long as an entry's last kStore is among them, and all of its
// later kAppend.
struct Change {
  enum class Kind : uint8_t {
    // The key has the entry `record`, which dies at `death_us`.
    kStore = 1,
    // The entry of that version has the times of `record`, whose value is not
    // set, and dies at `death_us`.
    kRenew = 2,
    // The key has no entry.
    kRemove = 3,
    // The entries that would have died at `death_us` died at `at_us`, of
    // `cause`, all shards' as one: kill number `kill`.
    kKill = 4,
    // The same of one key's entry.
    kEvict = 5,
    // The entry of version `base_version` has that of `record`, and at the end
    // of its value what `record` has as its value. Where it is `renewed`, it
    // has the times of `record`, and dies at `death_us`.
    kAppend = 7,
    // A Gather has completed the key whose hash is the eight bytes of `record`'s
    // key: it is remembered until `death_us`.
    kRemember = 12,
    // `answer` is remembered.
    kAnswer = 13,
  };

  Kind kind = Kind::kStore;
  Record record = {};
  // Of an append.
  uint64_t base_version = 0;
  bool renewed = false;
  int64_t death_us = 0;
  // The shard's time. Of a kill: when its entries died.
  int64_t at_us = 0;
  // Of a kill: those of one time happened in the order of their numbers.
  uint64_t kill = 0;
  Cause cause = Cause::kExpired;
  // Of the key; a kill has none. Not recorded.
  uint64_t hash = 0;
  // What is remembered with the change, in one record of a journal: kept both, or
  // none. Null: nothing. A kAnswer has nothing else.
  const AnswerTo* answer = nullptr;
  // Of an atomic batch that is replayed: the next change is of the same one.
  bool more_of_batch = false;
};

// The progress of time: all deaths at or before `watermark_us`, and by kills up
// to number `kills`, may be published, as the events before number
// `next_event`. The log retains those from `retained_event` on, and may retain
// some before; 0: all.
struct Tick {
  int64_t watermark_us = 0;
  uint64_t next_event = 0;
  uint64_t retained_event = 0;
  uint64_t kills = 0;
};

// What a map has counted, after an Advance.
struct MapCounts {
  // What died by then of its time, and by the kills,
  int64_t watermark_us = INT64_MIN;
  // is the events before this one.
  uint64_t next_event = 0;
  // See Change::kill.
  uint64_t kills = 0;
};

// A period in which there was no server. The events that are retained stay for
// so much longer. If the `entries` wait, too, put time, deadline and death of
// those that lived at `from_us` move by its length.
struct TimeSkip {
  int64_t from_us = 0;
  int64_t to_us = 0;
  bool entries = true;
};

// Events that died together and that the log has, from number `first_event` on:
// what a rebuilt log needs that does not see their deaths.
struct RetainedEvents {
  uint64_t first_event = 0;
  // When the log got them, plus all time since that did not count (TimeSkip).
  int64_t appended_us = 0;
  Death death = {};
  absl::Span<const ExpiredEvent> events = {};

  uint64_t end_event() const { return first_event + events.size(); }
};

class AtomicChanges;

// Receives the changes of a map. Called under the map's locks: calls must only
// copy, and must not call the map.
//
// A Tick is valid once all changes are known that any shard had made before it:
// a sink that stores both takes the shards' changes after the ticks that it
// stores with them.
class ChangeSink {
 public:
  virtual ~ChangeSink() = default;

  // Of one shard: in order, one after the other.
  virtual void Add(int shard, const Change& change) = 0;
  // An empty atomic batch, which takes the changes of one, of any shards, in
  // place of this sink. Null: this has no means to keep them all or none, and
  // takes them one by one.
  virtual std::unique_ptr<AtomicChanges> NewAtomic() const { return nullptr; }
  // All its changes, as one. Their shards have been locked since before the
  // first of them.
  virtual void AddAtomic(std::unique_ptr<AtomicChanges> /*changes*/) {}
  // Result::position of an operation on the key with this hash, which has just
  // been applied: under the lock of the key's shard. `writes` says whether it
  // was one that may change something.
  virtual uint64_t PositionOf(uint64_t /*hash*/, bool /*writes*/) const {
    return 0;
  }
  // In order, one after the other. Its events are published once it is
  // permitted: see TimeCacheMap::Permit.
  virtual void AddTick(const Tick& tick) = 0;
  // See TimeCacheMap::AppendRetained.
  virtual void AddRetained(const RetainedEvents& /*events*/) {}
};

// The changes of one atomic batch. Not thread-safe.
class AtomicChanges : public ChangeSink {
 public:
  // There are none in it.
  void AddTick(const Tick& /*tick*/) final {}
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_CHANGE_H_

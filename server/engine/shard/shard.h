// One part of a map: an index, the segments that it refers to, and the
// generations that these die in.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_SHARD_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_SHARD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/clock.h"
#include "server/base/lock_order.h"
#include "server/base/memory_budget.h"
#include "server/engine/shard/change.h"
#include "server/engine/shard/change_watch.h"
#include "server/engine/shard/compact_index.h"
#include "server/engine/shard/key_sample.h"
#include "server/engine/shard/lean_queue.h"
#include "server/engine/shard/live_buckets.h"
#include "server/engine/shard/live_position.h"
#include "server/engine/shard/remembered_answers.h"
#include "server/engine/shard/remembered_keys.h"
#include "server/engine/shard/segment.h"
#include "server/engine/shard/turn_mutex.h"
#include "server/engine/shard/usage.h"
#include "server/engine/shard/version_source.h"
#include "server/engine/store/key_hash.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/operation.h"
#include "server/engine/store/scan.h"
#include "server/engine/store/statistics.h"

namespace timecache::server {

// Whether the operation's condition holds for the entry's version; 0: no entry.
absl::Status CheckCondition(const Operation& op, uint64_t version);

// Thread-safe: one mutex. The shard's time is passed in and never goes back:
// its `now` is the latest that it has seen.
//
// A generation is live, due (its death time has come, but it has not been
// detached) or detached. Lookups treat due and detached ones as gone, by the
// clock and by the generation's mark. A slot that refers to such a record stays
// until the sweep has published its event: a put on the same key takes a new
// slot.
class Shard {
 public:
  // Records that one sweep step erases under the lock.
  static constexpr int kSweepLockRecords = 32;
  // Records that one mutation passes and moves at most, to compact what is
  // mostly dead.
  static constexpr int kCompactRecords = 8;
  static constexpr int kCompactMoves = 2;
  // Keys that a map remembers at most, its shards together.
  static constexpr size_t kMaxRememberedKeys = size_t{1} << 18;
  // Bytes of the values in answers that a map remembers at most.
  static constexpr int64_t kMaxAnswerBytes = int64_t{64} << 20;
  // Slots of the index that one scan step visits under the lock, and pages that
  // it looks at for them.
  static constexpr int kScanSlots = 1'024;
  static constexpr int kScanSteps = 16;

  // `usage`, `buckets`, `versions` and `sample` are not owned. Null: operations
  // are not sampled.
  Shard(const NamespaceOptions& options, Usage* usage, LiveBuckets* buckets,
        VersionSource* versions, KeyHash hash, KeySample* sample = nullptr);

  struct Outcome {
    // The limit that the put would exceed; then nothing was done.
    LimitHit hit = LimitHit::kNone;
    // What it would have added.
    Usage::Amount more;
    // Key and value of the entry that it would make if the key was not there.
    int64_t alone_bytes = 0;
    // A generation was made that dies then, or changes are to be flushed then;
    // kNeverUs if neither.
    int64_t new_death_us = kNeverUs;
    // The remembered answer to its id is the result: nothing has changed.
    bool repeated = false;
  };
  // Applies a valid operation; `*result` must be fresh. An entry that it
  // returns takes its room.
  Outcome Apply(const Operation& op, uint64_t hash, int64_t now_us,
                ResponseBudget* room, Result* result) ABSL_LOCKS_EXCLUDED(mu_);

  // The same for many, under a lock that the caller takes, since a batch has
  // that of several shards at once: it then calls the three below for all of
  // them, one after the other, so that the cache misses of all their items
  // overlap. A thread that holds one lock waits for another only in order of
  // index.
  struct Item {
    const Operation* op;
    uint64_t hash;
    Result* result;
  };
  // Items that are applied at most before the locks are let go.
  static constexpr size_t kMaxLockItems = 64;
  bool TryLock() const ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true, mu_) {
    return mu_.TryLock();
  }
  // Bring what the items will touch into the cache, and do not wait for it:
  // first the lines of the index; once those are there, the records that they
  // lead to.
  void PrefetchIndexLocked(absl::Span<const Item> items) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PrefetchRecordsLocked(absl::Span<const Item> items) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // In order. Returns how many were applied: the next one would pass a limit,
  // or much was copied, and it is for a call of its own. `*new_death_us` gets
  // the earliest death of a new generation, or stays.
  size_t ApplyLocked(absl::Span<const Item> items, int64_t now_us,
                     ResponseBudget* room, int64_t* new_death_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Atomic batches, of one or several shards, all of which the caller locks
  // first, in order of index. Then Begin of each; Check of each operation, and
  // Checked of each shard; and if each of them can be applied, all of that
  // again: Apply of each, in the same order. End of each shard in any case.

  // Before that, of an Append or a Gather: where a large value has no room for
  // it, that is made now, so that no copy of it is under the locks of others.
  void PrepareAppend(const Operation& op, uint64_t hash, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  // At `now_us`, which is the latest that any of the shards has seen. Returns
  // whether it has room for so many operations.
  bool BeginAtomicLocked(int64_t now_us, size_t operations)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Where it reports changes; null if nowhere.
  ChangeSink* SinkLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return sink_;
  }
  // Fills the result as ApplyAtomicLocked would, but for versions and entries,
  // and changes nothing. The outcome's limits are not those of the account.
  Outcome CheckAtomicLocked(const Item& item, ResponseBudget* room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return ApplyOne(*item.op, item.hash, room, item.result);
  }
  // What the checked operations add to the account: the caller does that.
  Usage::Amount CheckedAtomicLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Changes are reported to `sink` from here to the end, if there is one, and
  // are those of `*watch`, as in ChangeWatch::BeginAtomic.
  void BeginApplyLocked(size_t operations, ChangeSink* sink,
                        std::unique_ptr<AtomicWatch>* watch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the earliest death of a new generation. Cannot fail, as it has been
  // checked.
  int64_t ApplyAtomicLocked(const Item& item, ResponseBudget* room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns what the applied ones added.
  Usage::Amount EndAtomicLocked(ChangeSink* sink)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The position of the result, of an operation that was applied or failed.
  void SetPositionLocked(const Item& item) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    SetPosition(*item.op, item.hash, item.result);
  }

  // One step of a walk: live entries from `*position` on, in order of their
  // hashes, until kScanSlots slots or the given numbers are reached. Sets
  // `*position` to the beginning of a tag; CompactIndex::kTags when through.
  void Scan(absl::string_view prefix, int64_t now_us, int* entries_left,
            int64_t* bytes_left, ScanPosition* position,
            const EntryVisitor& visit) ABSL_LOCKS_EXCLUDED(mu_);

  void SetOptions(const NamespaceOptions& options) ABSL_LOCKS_EXCLUDED(mu_);

  // Reports each change to `sink` from now on, as that of shard number `shard`.
  void SetSink(ChangeSink* sink, int shard) ABSL_LOCKS_EXCLUDED(mu_);

  // Reports each later change by an operation to `watch`, once what was reported
  // to the one before is flushed. Null: none. Not owned.
  void SetChangeWatch(ChangeWatch* watch, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);

  // --- Death. Detached generations keep their segments until these are freed.

  using Detached = std::vector<std::unique_ptr<Generation>>;
  // Detaches the generations whose death time is at or before `now_us`, in
  // order, and flushes the changes of the ChangeWatch.
  void DetachDue(int64_t now_us, Detached* due) ABSL_LOCKS_EXCLUDED(mu_);
  // The earliest death of a live generation; kNeverUs if there is none.
  int64_t NextDeathUs() const ABSL_LOCKS_EXCLUDED(mu_);

  // For a death of several shards at one instant: all are locked first. Also
  // for a batch that waits, see TryLock.
  void Lock() const ABSL_EXCLUSIVE_LOCK_FUNCTION(mu_) { mu_.Lock(); }
  // Of a batch that has copied much: behind those that wait by now.
  void LockInTurn() const ABSL_EXCLUSIVE_LOCK_FUNCTION(mu_) {
    mu_.LockInTurn();
  }
  void Unlock() const ABSL_UNLOCK_FUNCTION(mu_) { mu_.Unlock(); }
  int64_t SeenLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return now_us_;
  }
  void DetachDueLocked(int64_t now_us, Detached* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The earliest death of a generation with an entry; kNeverUs if there is
  // none.
  int64_t OldestLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // A death before its time, of what would have died at `death_us`.
  struct Kill {
    int64_t death_us = 0;
    int64_t at_us = 0;
    uint64_t number = 0;
    Cause cause = Cause::kRotated;
  };
  // Detaches the generation of this death, before its time; null if there is
  // none.
  std::unique_ptr<Generation> KillLocked(const Kill& kill)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The latest death of a generation with an entry; 0 if there is none.
  int64_t YoungestLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // When the oldest entry of the generation of this death was put: the first in
  // its chain of segments. kNeverUs if there is none; kNotYet if it lies behind
  // more than `*records` dead ones, which are passed and need not be again.
  // Takes from `*records` what was passed.
  static constexpr int64_t kNotYet = INT64_MIN;
  int64_t OldestPutLocked(int64_t death_us, int* records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Kills the entry that OldestPutLocked has found: it moves to `dead`, which
  // is detached and dead. Returns false if the shard has no room for that.
  bool EvictOldestLocked(const Kill& kill, Generation* dead)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // --- Rebuilding from changes.

  // One step of a walk as Scan's, over all live entries: reports each to the
  // sink as it is, so that their earlier changes are no longer needed.
  void AppendAgain(int64_t now_us, int* entries_left, int64_t* bytes_left,
                   uint32_t* tag) ABSL_LOCKS_EXCLUDED(mu_);

  // Applies a change that another shard of this number reported, without
  // checking limits. Of a kill, the dead entries are added to `*dead`.
  // Renewing, removing, killing or appending to a missing entry changes
  // nothing. Returns false where what was appended is missing for that: neither
  // the entry of the version before is there, nor one that has it.
  bool Replay(const Change& change, std::unique_ptr<Generation>* dead)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Whether that would not return false.
  bool CanReplay(const Change& change) ABSL_LOCKS_EXCLUDED(mu_);
  // The same for a TimeSkip: O(records).
  void Skip(const TimeSkip& skip) ABSL_LOCKS_EXCLUDED(mu_);
  // Nothing is replayed any more. The shard has come to `now_us`, its map's
  // time, also where the clock is behind it: a put would have a deadline that
  // is too early once the clock is right. Returns a version above all that were
  // replayed: those that the shard assigns from now on must not be below it.
  uint64_t EndReplay(int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);

  // --- Entries that are about to die.

  // Live generations that are listed, and records that are read, under the
  // lock; and most bytes of the latter's keys and values, but for a single
  // larger one.
  static constexpr size_t kMaxLiveDeaths = 64;
  static constexpr int kReadRecords = 64;
  static constexpr int64_t kReadBytes = 64 << 10;

  // Lists the deaths of generations that die after `after_us` and `now_us`, in
  // order, until the first one past `until_us`, which is listed, too, or until
  // `deaths` is full. Returns their number.
  size_t ListLive(int64_t after_us, int64_t until_us, int64_t now_us,
                  absl::Span<int64_t> deaths) ABSL_LOCKS_EXCLUDED(mu_);
  // How much dies then.
  struct LiveDeath {
    int64_t death_us;
    int64_t entries;
    int64_t bytes;
  };
  // As ListLive, with what dies, and without a last one.
  size_t CountLive(int64_t after_us, int64_t now_us,
                   absl::Span<LiveDeath> deaths) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a live record, or returns false: then the step ends before it. Runs
  // under the lock, so it must only copy.
  using LiveVisitor = absl::FunctionRef<bool(const Record& record)>;
  // One step of a walk over the live records of the generation that dies then;
  // none, if that is not after `now_us`. Returns whether it is through. A
  // record may be visited twice if compaction moves it during the walk.
  bool ReadLive(int64_t death_us, int64_t now_us, LivePosition* place,
                LiveVisitor visit) ABSL_LOCKS_EXCLUDED(mu_);

  // Remembers which generations that die at or before `*until_us` take new
  // records, `max_changes` of them at most. `until_us` is not owned and may be
  // raised at any time: what is put after a later lock of the shard follows it.
  // Null: remembers nothing, and forgets.
  void TrackChanges(const std::atomic<int64_t>* until_us, size_t max_changes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a live record of a generation with that death.
  using ChangeVisitor =
      absl::FunctionRef<void(int64_t death_us, const Record& record)>;
  // A walk over the records that were put or renewed since the last walk, each
  // once but for what compaction moves; not those that were overwritten where
  // they are. Begins with 0 in `*until_change`. Each step sets `*missed` if
  // there were too many generations: then it has not visited all. Returns
  // whether the walk is through.
  bool ReadChanges(int64_t now_us, uint64_t* until_change, bool* missed,
                   ChangeVisitor visit) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t width_us() const ABSL_LOCKS_EXCLUDED(mu_);

  // --- Sweep, of detached generations only. One thread at a time.

  // The segment, which may be read without the lock until it is freed.
  const Segment* DeadSegment(SegmentId id) ABSL_LOCKS_EXCLUDED(mu_);
  struct DeadRecord {
    uint32_t tag;
    RecordRef ref;
    // Set by EraseDead: whether it was live until its generation died.
    bool live;
  };
  // At most kSweepLockRecords.
  void EraseDead(absl::Span<DeadRecord> records) ABSL_LOCKS_EXCLUDED(mu_);
  // Frees a segment whose records have all been given to EraseDead.
  void FreeDead(SegmentId id) ABSL_LOCKS_EXCLUDED(mu_);

  // --- Statistics.

  const KeyHash& key_hash() const { return key_hash_; }
  struct Statistics {
    int64_t memory_bytes = 0;
    OperationCounts operations;
    // The death of the generation that has no entry, although it is in
    // LiveBuckets: the one that was last put into may have none. kNeverUs:
    // there is none.
    int64_t empty_death_us = kNeverUs;
  };
  // O(1).
  Statistics GetStatistics() const ABSL_LOCKS_EXCLUDED(mu_);
  // Bytes of values that were copied because they moved, or by compaction, and
  // what stands for the parts that Gathers have read. For tests.
  uint64_t copied_bytes() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A live record, where its slot is and what it says.
  struct Found {
    // See Operation's.
    Found() {}

    CompactIndex::Slot* slot = nullptr;
    SegmentId segment = kNoSegment;
    uint32_t offset = 0;
    size_t size = 0;
    // Of the key that was looked for, by an operation.
    uint64_t hash = 0;
    Record record;
  };

  // Where a record has died, and how many bytes it took.
  struct Hole {
    SegmentPlace place;
    size_t size = 0;
  };

  // A live record that compaction has found, and where it moves: without a hole
  // to the end of its generation.
  struct Moving {
    RecordRef ref;
    uint32_t tag;
    Hole hole;
  };

  Outcome ApplyOne(const Operation& op, uint64_t hash, ResponseBudget* room,
                   Result* result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of an operation that was applied.
  void CountUse(const Operation& op, const Result& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (--until_sample_ == 0) [[unlikely]] {
      AddToSample(op, result);
    }
  }
  void AddToSample(const Operation& op, const Result& result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of an operation with an id, while it is applied.
  struct Once {
    AnswerId id;
    const Result* result;
    // Whether a change was reported with the answer.
    bool reported = false;
  };
  Outcome ApplyOnce(const Operation& op, uint64_t hash, ResponseBudget* room,
                    Result* result) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  AnswerView AnswerOf(const Result& result) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EmitAnswer(const AnswerTo& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepAnswer(const AnswerTo& answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReportChange(const Operation& op, uint32_t tag, uint64_t old_version,
                    const Result& result, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t Observe(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CountLookup(bool found) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ++(found ? operations_.hits : operations_.misses);
  }
  Found FindLive(uint32_t tag, absl::string_view key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Put(const Operation& op, uint32_t tag, const Found& old,
           ResponseBudget* room, Result* result, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AppendValue(const Operation& op, uint32_t tag, const Found& old,
                   Result* result, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Combine(const Operation& op, uint32_t tag, const Found& old,
               Result* result, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Gather(const Operation& op, uint32_t tag, const Found& old,
              ResponseBudget* room, Result* result, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Complete(const Operation& op, const Found& old, absl::string_view more,
                ResponseBudget* room, Result* result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remember(uint64_t hash, int64_t until_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EmitRemember(uint64_t hash, int64_t until_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckFirstPart(const Gathering& gathering, uint64_t hash) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Replace(const Operation& op, absl::string_view value, bool parts,
               uint32_t tag, const Found& old, Result* result, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Extend(const Operation& op, absl::string_view more, int64_t alone_bytes,
              uint32_t tag, const Found& old, Result* result, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StoreLonger(Record record, absl::string_view more, int64_t death_us,
                   uint32_t tag, const Found& old, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of a value of so many bytes that is appended to and has to move.
  uint32_t CapacityFor(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckValueBytes(size_t bytes) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Renew(const Operation& op, uint32_t tag, const Found& old,
             Result* result, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Take(const Operation& op, const Found& old)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Reserve(const Found& old, int64_t bytes, int64_t alone_bytes,
               Outcome* outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of an entry that `op` makes. Good until the next one.
  void SetTrace(const Operation& op, Record* record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (op.trace_bytes == 0) [[likely]] {
      return;
    }
    PackTrace(op.trace(), trace_);
    record->trace = trace_;
  }
  void BeginLife(const Operation& op, const Found& old, Record* record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RenewLife(const Operation& op, const Found& old, Record* record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t KeepOrRenew(const Operation& op, const Found& old,
                      Record* record) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of a record whose life begins. One that is due already dies at the next
  // moment: deaths up to now may have been published.
  int64_t DeathOf(const Record& record) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return record.life_us > 0 ? DeathTimeUs(record.deadline_us(), width_us_)
                              : now_us_ + 1;
  }
  int64_t DeathOf(const Found& found) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return segments_[found.segment].generation->death_us;
  }
  void StoreAs(Change::Kind kind, const Record& record, int64_t death_us,
               uint32_t tag, const Found& old, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  RecordRef Store(const Record& record, int64_t death_us, uint32_t tag,
                  const Found& old, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MoveSegment(const Record& record, int64_t death_us, const Found& old,
                   Outcome* outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Evict(const Found& old, Generation* dead)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What the answer to an operation that was applied waits for.
  void SetPosition(const Operation& op, uint64_t hash, Result* result) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (sink_ == nullptr) return;
    result->position = sink_->PositionOf(hash, Writes(op, sliding_));
  }
  void EmitChange(const Change& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (once_ != nullptr) [[unlikely]] {
      return EmitOnce(change);
    }
    sink_->Add(sink_shard_, change);
  }
  void EmitOnce(const Change& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MovePutTimes(Segment* segment, int64_t by_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EmitKill(Change::Kind kind, const Kill& kill, absl::string_view key)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  template <typename Visit>
  void Walk(int64_t now_us, int* entries_left, int64_t* bytes_left,
            uint32_t* tag, const Visit& visit)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  static bool TakeRoom(size_t value_bytes, ResponseBudget* room,
                       Result* result);
  static void SetEntry(const Record& record, Result* result);
  bool Answer(const Record& record, ResponseBudget* room, Result* result) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Generation* GenerationFor(int64_t death_us, Outcome* outcome)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FreeEmptyOpen(const Generation& generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  RecordRef Append(const Record& record, Generation* generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  RecordBase NewBase(const Record& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t NewVersion() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  LimitHit Charge(int64_t entries, int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SettleCharges() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(const Found& old) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MarkDead(SegmentId id, uint32_t offset, size_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void QueueIfSparse(SegmentId id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CompactStep() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FindGarbage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FindMoving() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Holds(const SegmentPlace& place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayFill(const Segment& segment) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SegmentId DonorOf(const Generation& generation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FindFiller() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  RecordRef Fill(const Record& record, const Generation* generation,
                 const Hole& hole) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Move(const Moving& moving) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ReleaseIfEmpty(Generation* generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  using Generations = absl::btree_map<int64_t, std::unique_ptr<Generation>>;
  std::unique_ptr<Generation> TakeOut(Generations::iterator generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  bool Holds(const Generation& generation, const SegmentPlace& place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SegmentPlace EndOf(SegmentId id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SegmentPlace* NextUnread(const Generation& generation,
                           LivePosition* place) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ReadSome(const Generation& generation, LivePosition* place,
                LiveVisitor visit) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteChange(Generation* generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropChanges(size_t count) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  Usage* const usage_;
  LiveBuckets* const buckets_;
  VersionSource* const versions_;
  const KeyHash key_hash_;
  const size_t max_remembered_keys_;
  KeySample* const sample_;
  MemoryCharge charge_;

  mutable TurnMutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kShard)
      ABSL_ACQUIRED_BEFORE(lock_order::kLog);
  int64_t now_us_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  // See SetSink.
  ChangeSink* sink_ ABSL_GUARDED_BY(mu_) = nullptr;
  int sink_shard_ ABSL_GUARDED_BY(mu_) = 0;
  // See SetChangeWatch.
  ChangeWatch* change_watch_ ABSL_GUARDED_BY(mu_) = nullptr;
  // Operations until one is added to the sample.
  uint32_t until_sample_ ABSL_GUARDED_BY(mu_);
  // What is left of the block of versions that was taken last.
  uint64_t next_version_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t versions_end_ ABSL_GUARDED_BY(mu_) = 0;
  // When the lock was taken: a load for all operations under it.
  MemoryBudget::Level memory_ ABSL_GUARDED_BY(mu_) = MemoryBudget::Level::kRoom;
  int64_t ttl_us_ ABSL_GUARDED_BY(mu_);
  int64_t max_life_us_ ABSL_GUARDED_BY(mu_);
  int64_t width_us_ ABSL_GUARDED_BY(mu_);
  bool sliding_ ABSL_GUARDED_BY(mu_);
  size_t max_value_bytes_ ABSL_GUARDED_BY(mu_);
  // Changes by operations under this lock that are not yet added to usage_. Its
  // atomics, which all shards share, cost as much as a cache miss.
  int64_t uncharged_entries_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t uncharged_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  CompactIndex slots_ ABSL_GUARDED_BY(mu_);
  SegmentTable segments_ ABSL_GUARDED_BY(mu_);
  Generations generations_ ABSL_GUARDED_BY(mu_);
  // The generation that was last put into: where the next put goes, too, unless
  // the bucket has changed or it brings its own TTL.
  Generation* current_ ABSL_GUARDED_BY(mu_) = nullptr;
  OperationCounts operations_ ABSL_GUARDED_BY(mu_);
  uint64_t copied_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Of the record that was last found.
  size_t last_size_ ABSL_GUARDED_BY(mu_) = 0;
  // Segments that are mostly dead; numbers that are no longer so are skipped.
  LeanQueue<SegmentId> sparse_ ABSL_GUARDED_BY(mu_);
  // How far evictions have come that take entries one by one: what is before it
  // in its generation's chain is dead, but for what the open segment took
  // since.
  SegmentPlace evicted_ ABSL_GUARDED_BY(mu_);
  // See TrackChanges.
  const std::atomic<int64_t>* track_until_us_ ABSL_GUARDED_BY(mu_) = nullptr;
  size_t max_changes_ ABSL_GUARDED_BY(mu_) = 0;
  // In order, from number first_change_ on. Generations know theirs.
  LeanQueue<LiveChange> changes_ ABSL_GUARDED_BY(mu_);
  uint64_t first_change_ ABSL_GUARDED_BY(mu_) = 1;
  bool missed_changes_ ABSL_GUARDED_BY(mu_) = false;
  MemoryCharge changes_charge_ ABSL_GUARDED_BY(mu_);
  // Null if there is none.
  std::unique_ptr<RememberedKeys> remembered_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<RememberedAnswers> answers_ ABSL_GUARDED_BY(mu_);
  int64_t idempotency_window_us_ ABSL_GUARDED_BY(mu_) = 0;
  size_t max_answers_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t max_answer_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // See SetTrace.
  char trace_[kTraceBytes] ABSL_GUARDED_BY(mu_) = {};
  // Null but for an operation with an id.
  Once* once_ ABSL_GUARDED_BY(mu_) = nullptr;
  // Of an atomic batch: whether its operations are only checked.
  enum class Atomic : uint8_t { kNone, kChecking, kApplying };
  Atomic atomic_ ABSL_GUARDED_BY(mu_) = Atomic::kNone;
  // At its begin.
  OperationCounts counts_before_ ABSL_GUARDED_BY(mu_);
  // Live records that the next mutation moves out of them.
  absl::InlinedVector<Moving, kCompactMoves + 1> moving_ ABSL_GUARDED_BY(mu_);
  // What the last mutation left; without a segment: none.
  Hole hole_ ABSL_GUARDED_BY(mu_);
  // Holes since a record fitted one. Beyond kManyMisfits only one in so many is
  // tried: sizes differ, and looking costs cache misses.
  static constexpr uint32_t kManyMisfits = 16;
  uint32_t misfits_ ABSL_GUARDED_BY(mu_) = 0;
  // Mutations without a hole until one looks for garbage, in which segment it
  // was looked for last, and the share of dead bytes from which on it is some.
  static constexpr uint32_t kLookEvery = 16;
  static constexpr uint32_t kLookBytes = 32;
  static constexpr uint32_t kLeastGarbageShare = 8;
  uint32_t until_look_ ABSL_GUARDED_BY(mu_) = kLookEvery;
  SegmentId looked_at_ ABSL_GUARDED_BY(mu_) = kNoSegment;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_SHARD_H_

// The expiring map: Storm's TimeCacheMap, with O(1) operations whatever the
// number of buckets, buckets that die without a pause, and a log of dead
// entries.

#ifndef TIMECACHED_SERVER_ENGINE_MAP_TIME_CACHE_MAP_H_
#define TIMECACHED_SERVER_ENGINE_MAP_TIME_CACHE_MAP_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/base/lock_order.h"
#include "server/base/rate_limit.h"
#include "server/engine/expiry/change_feed.h"
#include "server/engine/expiry/expiring_feed.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/expiry/sweeper.h"
#include "server/engine/groups/consumer_groups.h"
#include "server/engine/map/change_log.h"
#include "server/engine/shard/change.h"
#include "server/engine/shard/live_buckets.h"
#include "server/engine/shard/shard.h"
#include "server/engine/shard/usage.h"
#include "server/engine/shard/version_source.h"
#include "server/engine/store/deaths_ahead.h"
#include "server/engine/store/namespace_options.h"
#include "server/engine/store/operation.h"
#include "server/engine/store/partitions.h"
#include "server/engine/store/scan.h"
#include "server/engine/store/statistics.h"

namespace timecache::server {

class AtomicBatch;
class ItemsByShard;

// A map whose entries die in buckets.
//
// An entry put at time t with TTL x is visible to every reader until its bucket
// dies at d = ceil((t + x) / w) * w, for the bucket width w = ttl /
// (num_buckets - 1): so d is in [t + x, t + x + w), never early, late by less
// than w. This holds by the clock, whether or not the bucket has been swept:
// readers compare with `now`.
//
// The map reads no clock and owns no thread: every call passes the time, and
// the Reaper calls Advance and Sweep. A `now_us` before one that a part of the
// map has already seen counts as that one.
//
// Thread-safe. Apply costs O(1) whatever the number of entries and buckets: a
// hash, a lock of one of num_shards parts, a cache miss for the index and one
// for the record. An own TTL costs O(log of the live buckets) more. The death
// of a bucket costs O(1) under each part's lock; the sweep that follows holds a
// lock for at most kSweepLockRecords records at a time.
class TimeCacheMap final : private GroupHost {
 public:
  // The identity of a map, besides its options.
  struct Origin {
    // Starts the numbers of its events, from 1 up: a re-created map has another
    // one, so that a late settlement cannot settle another event.
    uint64_t first_event = 1;
    // That of all maps of a server; not owned. If null, the map has one of its
    // own that starts when it is created.
    VersionSource* versions = nullptr;
    // Whether it can be rebuilt from its changes (MapReplay): its events are
    // then in an order that these determine, and are published once it is
    // Permitted.
    bool journaled = false;
    // Of a rebuilt map, those of the original. 0: random.
    uint64_t hash_seed = 0;
    uint64_t log_id = 0;
    // Of a copy's map.
    LogFork fork = {};
  };

  // `options` must be valid. `server_usage` counts for all maps of a server;
  // not owned, may be null.
  TimeCacheMap(std::string name, const NamespaceOptions& options,
               Usage* server_usage, int64_t created_us, Origin origin);
  TimeCacheMap(std::string name, const NamespaceOptions& options,
               Usage* server_usage, int64_t created_us)
      : TimeCacheMap(std::move(name), options, server_usage, created_us,
                     Origin()) {}
  ~TimeCacheMap();
  TimeCacheMap(const TimeCacheMap&) = delete;
  TimeCacheMap& operator=(const TimeCacheMap&) = delete;

  // Of the map; and of the namespace of which it is a partition (partitions.h):
  // what errors, events and dead letters name.
  const std::string& name() const { return name_; }
  const std::string& namespace_name() const override { return namespace_name_; }
  int partition() const override { return partition_; }
  int num_partitions() const { return num_partitions_; }
  bool journaled() const { return origin_.journaled; }

  // How many of `operations` the map's max_operations_per_second lets through:
  // the first ones. For callers that take operations from clients; Apply does
  // not check it.
  size_t Admit(size_t operations, int64_t now_us) {
    return rate_limit_.Take(operations, now_us);
  }
  // The same of all of them, or none.
  bool AdmitAll(size_t operations, int64_t now_us) {
    return rate_limit_.TakeAll(operations, now_us);
  }
  // The error of the others: RESOURCE_EXHAUSTED (MAX_OPERATION_RATE), with the
  // time to retry so many.
  absl::Status RateError(int64_t now_us, size_t operations = 1) const;
  // See Usage::SetJoined.
  void SetJoined(bool joined) { usage_.SetJoined(joined); }
  // In GetStatistics, from now on. Lock-free.
  void CountRefused(LimitHit hit, uint64_t operations = 1) {
    refused_[static_cast<size_t>(hit)].fetch_add(operations,
                                                 std::memory_order_relaxed);
  }

  // Applies one operation. Result.status is OK, INVALID_ARGUMENT (malformed
  // key, value or TTL), FAILED_PRECONDITION (condition) or RESOURCE_EXHAUSTED
  // (a limit).
  // `*result` is overwritten; one that is used again saves allocations.
  void Apply(const Operation& op, int64_t now_us, Result* result) override;
  Result Apply(const Operation& op, int64_t now_us) {
    Result result;
    Apply(op, now_us, &result);
    return result;
  }

  // Applies Operation::DeadLetter: OUT_OF_RANGE for one larger than the limit of the
  // whole map, or of the server; RESOURCE_EXHAUSTED for temporary conditions.
  absl::Status PutDeadLetter(absl::string_view key, absl::string_view value,
                             int64_t now_us);

  // Applies many, as if one after the other for each key; each succeeds or
  // fails by itself. `results` has as many. RESOURCE_EXHAUSTED
  // (MAX_RESPONSE_BYTES) for one whose entry has no ResponseBudget beside the
  // others. Locks several parts of the map at once, as many as have
  // Shard::kMaxLockItems together, so that the cache misses of all overlap; a
  // part that another thread holds is done later.
  void ApplyBatch(absl::Span<const Operation> ops, int64_t now_us,
                  absl::Span<Result> results) {
    for (BatchProgress progress; !progress.done;) {
      ApplyBatch(ops, now_us, results, &progress);
    }
  }
  // One turn of that: until kTurnCopiedBytes were copied and one operation more,
  // or `*progress` is done. Called again with the same operations and results.
  void ApplyBatch(absl::Span<const Operation> ops, int64_t now_us,
                  absl::Span<Result> results, BatchProgress* progress);

  // Applies all of them, at one instant, or none: then the result of each that
  // fails says why, and the others are ABORTED (NOT_APPLIED). No other
  // operation, in a batch or not, comes in between, and a rebuild of the map
  // has all of their changes or none (ChangeSink::AddAtomic). INVALID_ARGUMENT,
  // with the results left as they were: two have the same key. At most
  // kMaxAtomicOperations. Locks all parts that they use, in order, for two
  // passes over the operations.
  absl::Status ApplyAtomic(absl::Span<const Operation> ops, int64_t now_us,
                           absl::Span<Result> results);

  // Live entries and bytes of their keys and values, at one instant: `now_us`,
  // or the latest time that any part of the map has seen. Locks all parts
  // briefly.
  NamespaceSize GetSize(int64_t now_us) ABSL_LOCKS_EXCLUDED(advance_mu_);
  // The same from the account, without a lock: includes entries that died since
  // the last Advance. O(1).
  NamespaceSize CountedSize() const {
    return {usage_.entries(), usage_.bytes()};
  }

  // A walk over the live entries whose keys begin with `prefix`. Every entry
  // that is live from the first call to the last is visited exactly once,
  // others at most once. Each call goes on until about `max_entries` or
  // `max_bytes` (a line of the index and its overflow more at the most) were
  // visited, or kMaxScanSteps parts of the map were walked without; it sets
  // `*position` for the next call and returns whether there is more. The views
  // given to `visit` live until it returns; it runs under a part's lock, so it
  // must only copy. In each part, entries come in order of their keys' hashes.
  static constexpr int kMaxScanSteps = 8;
  bool Scan(absl::string_view prefix, int64_t now_us, int max_entries,
            int64_t max_bytes, ScanPosition* position,
            const EntryVisitor& visit);
  // Before each step for a client. INVALID_ARGUMENT for one of another
  // map, also of one that had the same name.
  absl::Status BeginScan(ScanPosition* position) const;

  // Those of the namespace, of whose limits a partition applies its share.
  NamespaceOptions options() const ABSL_LOCKS_EXCLUDED(advance_mu_);
  // Uses `options` from now on; existing entries keep their deaths. They must
  // be valid; num_shards and num_partitions are ignored.
  void Update(const NamespaceOptions& options, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(advance_mu_);

  // Kills the live bucket that would die next; returns how many entries died.
  int64_t Rotate(int64_t now_us) ABSL_LOCKS_EXCLUDED(advance_mu_);

  // --- Changes, of a map that is journaled.

  // What is needed to rebuild it, besides its name and options.
  Origin origin() const;
  // Reports all changes to `sink` from now on, and after deaths the progress of
  // time. Not owned, must outlive the map. Set before use.
  void SetSink(MapChangeSink* sink) ABSL_LOCKS_EXCLUDED(advance_mu_);
  // The same for a sink that stores them, on which callers can wait.
  void SetChangeLog(std::shared_ptr<ChangeLog> log)
      ABSL_LOCKS_EXCLUDED(advance_mu_);
  // Null for a map that is not durable.
  ChangeLog* change_log() const { return change_log_.get(); }
  // One step of a walk as Scan's, over all entries: reports each to the sink as
  // it is. Changes from before a whole walk are not needed for live entries.
  bool AppendAgain(int64_t now_us, int max_entries, int64_t max_bytes,
                   ScanPosition* position);
  // Advances, and returns the progress of the map: at the end of such a walk.
  // Each earlier death is in none of the changes since the walk began, or is
  // counted in this.
  MapCounts EndWalk(int64_t now_us) ABSL_LOCKS_EXCLUDED(advance_mu_);
  // One step of a walk over the retained events before `*end`, the last ones
  // first: reports them to the sink, about `max_bytes` of them or one batch,
  // sets `*end` for the next call and returns whether there is more. After a
  // whole walk, from the end of one over the entries (EndWalk) down, changes
  // from before both are not needed to rebuild the log. While the log has not
  // got to `*end`, it sweeps instead.
  bool AppendRetained(int64_t now_us, int64_t max_bytes, uint64_t* end)
      ABSL_LOCKS_EXCLUDED(advance_mu_);
  // The oldest event that a reader may still need.
  uint64_t first_event() const { return log_.retained_event(); }
  // A rebuilt map is used from now on: its statistics begin, and what died by
  // then was due while there was no server. Before SetSchedule.
  void BeginLife(int64_t now_us) {
    began_us_ = now_us;
    sweeper_.BeginStatistics(now_us);
  }
  // See ExpiryLog::HoldUntil.
  void HoldEvents(int64_t until_us) { log_.HoldUntil(until_us); }
  // Memory of the retained events.
  int64_t retained_bytes() const { return log_.bytes(); }
  // And of the entries, live or not. O(shards).
  int64_t memory_bytes() const;
  // The events of a Tick may be published: no restart undoes it.
  void Permit(const Tick& tick);
  // Whether the last Tick reported to the sink is still to be permitted.
  bool AwaitsPermit() const {
    return permitted_us_.load(std::memory_order_acquire) <
               ticked_us_.load(std::memory_order_acquire) ||
           permitted_event_.load(std::memory_order_acquire) <
               ticked_event_.load(std::memory_order_acquire);
  }

  // --- Time, called by the map's driver (Reaper).

  // `schedule(due_us)` is called when something becomes due earlier than was
  // said before: from within other calls, never under a lock of the map. Set
  // before use.
  void SetSchedule(std::function<void(int64_t due_us)> schedule) {
    schedule_ = std::move(schedule);
  }

  // How often, at least, a map with restart_policy kPause records the time,
  // while it has entries, and any journaled map that retains events: what of a
  // life is not recorded is taken for downtime. More often after BeginLife, so
  // that this is less than a quarter of a short life, or kMinTickUs.
  static constexpr int64_t kMinTickUs = kMicrosPerSecond / 100;
  static constexpr int64_t kPauseTickUs = kMicrosPerSecond;
  static constexpr int64_t kRetainTickUs = 10 * kMicrosPerSecond;

  // When Advance and Sweep next have something to do; kNeverUs if never. From
  // this call on, `schedule` reports work that becomes due earlier than the
  // returned time.
  int64_t NextDueUs(int64_t now_us) ABSL_LOCKS_EXCLUDED(advance_mu_);

  // Buckets whose time has come are dead and wait for Sweep. O(1) each.
  void Advance(int64_t now_us) ABSL_LOCKS_EXCLUDED(advance_mu_);

  // Walks up to `max_records` dead records, publishes complete batches and
  // moves the watermark; then runs the consumer groups' time-outs, and drops
  // events of any map if memory runs short (MemoryReclaimer::Step). Returns
  // whether there is more to do. O(max_records).
  bool Sweep(int64_t now_us, int max_records) ABSL_LOCKS_EXCLUDED(advance_mu_);

  // Advance; if then nothing waits for Sweep, the watermark is `now_us`
  // afterwards. One that was refreshed less than `max_age_us` ago is good
  // enough, and costs an atomic load: so the heartbeats of all watchers of the
  // map share one Advance.
  void RefreshWatermark(int64_t now_us, int64_t max_age_us = 0)
      ABSL_LOCKS_EXCLUDED(advance_mu_);
  // How often all parts were locked, one after the other, to check what is due.
  uint64_t advances() const {
    return advances_.load(std::memory_order_relaxed);
  }

  // --- Events.

  // A cursor on deaths after `now_us`, for a journaled map including earlier
  // deaths that are not stored yet; or from the oldest retained event on. See
  // ExpiryLog::Subscribe.
  std::unique_ptr<ExpiryLog::Cursor> Subscribe(ExpiryLog::Start start,
                                               int64_t now_us,
                                               std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(advance_mu_);
  // A cursor at the position of another one. Errors as ExpiryLog::Resume.
  absl::StatusOr<std::unique_ptr<ExpiryLog::Cursor>> Resume(
      const ExpiryLog::Point& point, int64_t now_us, std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(advance_mu_);

  // A cursor on changes after `now_us`, or from the oldest retained one on; or
  // at the position of another one, with the errors of ExpiryLog::Resume. Of a
  // map that keeps none FAILED_PRECONDITION (NO_CHANGES): its cursors end, too.
  absl::StatusOr<std::unique_ptr<ChangeFeed::Cursor>> WatchChanges(
      ExpiryLog::Start start, const ExpiryLog::Point* point, int64_t now_us,
      std::function<void()> wake) ABSL_LOCKS_EXCLUDED(advance_mu_);
  absl::Status CheckKeepsChanges(const ChangeFeed::Cursor* cursor) const
      ABSL_LOCKS_EXCLUDED(advance_mu_);

  // Marks the map as part of a copy: see LogFork. Before any use.
  void SetLogFork(const LogFork& fork);
  void ForkLog();

  // The entries that are about to die.
  ExpiringFeed& expiring() { return expiring_; }

  // The groups whose members share this map's events.
  ConsumerGroups& groups() { return groups_; }

  // Ends all cursors and groups: the map is being deleted.
  void Close() {
    groups_.Close();
    log_.Close();
    expiring_.Close();
    if (const auto changes = this->changes()) changes->Close();
  }

  // Counts events handed to a watcher this long after their death, or after it
  // could take them.
  void CountDelivery(int64_t lateness_us, uint64_t events)
      ABSL_LOCKS_EXCLUDED(deliveries_mu_) {
    absl::MutexLock lock(&deliveries_mu_);
    delivery_lateness_.Add(lateness_us, events);
  }

  int64_t watermark_us() const { return log_.watermark_us(); }

  // Refreshes the watermark, too. O(shards + cursors); locks the parts one
  // after the other.
  NamespaceStatistics GetStatistics(int64_t now_us)
      ABSL_LOCKS_EXCLUDED(advance_mu_);

  // What dies when: no snapshot, each part at a time of its own. O(live buckets)
  // in each part, kMaxLiveDeaths of them under its lock.
  DeathsAhead GetDeaths(const DeathsQuery& query, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(advance_mu_);
  // The keys that are used most, by a sample of the operations since the map is
  // used. O(KeySample::kMaxSamples).
  HotKeys GetHotKeys(size_t max_keys, int64_t now_us) {
    return key_sample_.Top(max_keys, std::max(created_us_, began_us_), now_us);
  }

 private:
  friend class MapReplay;

  // `share` is ShareOf(options).
  TimeCacheMap(std::string name, const NamespaceOptions& options,
               const NamespaceOptions& share, Usage* server_usage,
               int64_t created_us, const Origin& origin);

  // GroupHost, with the namespace, the partition and Apply.
  ExpiryLog* log() override { return &log_; }
  absl::Status Follow(ExpiryLog::Follower* follower,
                      const LogPosition& position, int64_t now_us,
                      absl::FunctionRef<void(const LogPlace& place)> begin)
      override ABSL_LOCKS_EXCLUDED(advance_mu_);
  absl::Status MoveTo(absl::string_view key_prefix, const LogPosition& position,
                      int64_t now_us, ExpiryLog::Move move) override
      ABSL_LOCKS_EXCLUDED(advance_mu_);
  void Announce(int64_t due_us) override;
  absl::Status CheckRoom() const override {
    return change_log_ == nullptr ? absl::OkStatus() : change_log_->CheckRoom();
  }

  std::shared_ptr<ChangeFeed> changes() const ABSL_LOCKS_EXCLUDED(advance_mu_) {
    absl::MutexLock lock(&advance_mu_);
    return changes_;
  }
  std::shared_ptr<ChangeFeed> SetChanges(const NamespaceOptions& options,
                                         int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  absl::Status NoChanges() const;
  template <typename ScanShard>
  bool Walk(int max_entries, int64_t max_bytes, ScanPosition* position,
            const ScanShard& scan);
  Shard& ShardOf(uint64_t hash) { return *shards_[hash & shard_mask_]; }
  void ApplyOne(const Operation& op, uint64_t hash, int64_t now_us,
                ResponseBudget* room, Result* result);
  bool ApplyGroup(absl::Span<const Operation> ops, int64_t now_us,
                  uint64_t until_copied, ResponseBudget* room,
                  absl::Span<Result> results);
  void TryAtomic(AtomicBatch* batch, int64_t now_us);
  bool ApplyTurn(ItemsByShard* items, bool wait_in_turn, int64_t now_us,
                 ResponseBudget* room);
  absl::Status Check(const Operation& op, int64_t now_us) const;
  absl::Status CheckExpireAt(const Operation& op, int64_t now_us) const;
  absl::Status CheckMarks(const Operation& op) const;
  bool MakeRoom(int64_t now_us, const Usage::Amount& more,
                const Usage::Amount& alone) ABSL_LOCKS_EXCLUDED(advance_mu_);
  absl::Status LimitError(LimitHit hit);
  std::string Self() const;
  void AnnounceDeath(int64_t death_us, int64_t now_us);
  void SetOptions(const NamespaceOptions& options, int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  int64_t LockAll(int64_t now_us, std::vector<Shard::Detached>* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  void UnlockAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  int64_t DetachDue(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  void AddDue(std::vector<Shard::Detached> due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  std::vector<DeadBucket> MergeDue(std::vector<Shard::Detached> due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  void AdvanceLocked(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  // When the time is to be recorded next.
  int64_t NextTickUs(int64_t now_us, int64_t max_us) const;
  void AddTick() ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  // With `room_for`, for the limits' sake: see EvictSome.
  int64_t KillOldest(int64_t now_us, Cause cause,
                     const Usage::Amount* room_for = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);
  bool EvictSome(const Shard::Kill& kill, const Usage::Amount& room_for,
                 DeadBucket* dead) ABSL_EXCLUSIVE_LOCKS_REQUIRED(advance_mu_);

  // Constant after construction.
  const std::string name_;
  const std::string namespace_name_;
  const int partition_;
  const int num_partitions_;
  const uint64_t shard_mask_;
  // With a seed.
  const Origin origin_;
  const KeyHash key_hash_;
  const int64_t created_us_;
  LiveBuckets buckets_;
  VersionSource own_versions_;
  KeySample key_sample_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::function<void(int64_t)> schedule_;
  // See BeginLife.
  int64_t began_us_ = 0;

  RateLimit rate_limit_;
  Usage usage_;
  ExpiryLog log_;
  Sweeper sweeper_;
  // After the log, which it follows.
  ConsumerGroups groups_{this};
  ExpiringFeed expiring_;
  // Set before use.
  std::shared_ptr<ChangeLog> change_log_;
  // Operations that a limit refused, by LimitHit.
  std::array<std::atomic<uint64_t>, kLimitHits> refused_ = {};
  // The earliest due time that `schedule_` knows of.
  std::atomic<int64_t> announced_us_{kNeverUs};

  // Held while buckets die, so that they reach the sweeper in order of death.
  mutable absl::Mutex advance_mu_ ABSL_ACQUIRED_AFTER(lock_order::kMap)
      ABSL_ACQUIRED_BEFORE(lock_order::kSweep);
  NamespaceOptions options_ ABSL_GUARDED_BY(advance_mu_);
  // The watermark may have been published up to this time, which never goes
  // back: entries that are killed by RotateNamespace from now on die after it.
  int64_t claimed_us_ ABSL_GUARDED_BY(advance_mu_) = INT64_MIN;
  // Buckets that were killed, ever; see Change.
  uint64_t kills_ ABSL_GUARDED_BY(advance_mu_) = 0;
  MapChangeSink* sink_ ABSL_GUARDED_BY(advance_mu_) = nullptr;
  // Null if the map keeps no changes for watches.
  std::shared_ptr<ChangeFeed> changes_ ABSL_GUARDED_BY(advance_mu_);
  // The last time that it was passed.
  Tick tick_ ABSL_GUARDED_BY(advance_mu_) = {INT64_MIN, 0};

  // Never held together with the others.
  absl::Mutex deliveries_mu_;
  DurationHistogram delivery_lateness_ ABSL_GUARDED_BY(deliveries_mu_);

  // Of the last tick that was reported, and of the last one that was permitted.
  std::atomic<int64_t> ticked_us_{INT64_MIN};
  std::atomic<uint64_t> ticked_event_{0};
  std::atomic<int64_t> permitted_us_{INT64_MIN};
  std::atomic<uint64_t> permitted_event_{0};
  // The time of the last RefreshWatermark.
  std::atomic<int64_t> refreshed_us_{INT64_MIN};
  std::atomic<uint64_t> advances_{0};

  // What Apply checks operations against: options_, without a lock.
  std::atomic<int64_t> max_ttl_us_;
  std::atomic<int64_t> max_value_bytes_;
  std::atomic<bool> evict_;
  // Whether requests may have an idempotency id.
  std::atomic<bool> takes_ids_;
  // Whether restart_policy is kPause.
  std::atomic<bool> pauses_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_MAP_TIME_CACHE_MAP_H_

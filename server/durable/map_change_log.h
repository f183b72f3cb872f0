// The change logs of a server's maps, on a journal.

#ifndef TIMECACHED_SERVER_DURABLE_MAP_CHANGE_LOG_H_
#define TIMECACHED_SERVER_DURABLE_MAP_CHANGE_LOG_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/lock_order.h"
#include "server/durable/change_record.h"
#include "server/durable/completions.h"
#include "server/durable/map_record.h"
#include "server/durable/open_keys.h"
#include "server/durable/read_confirmations.h"
#include "server/engine/map/change_log.h"
#include "server/engine/map/time_cache_map.h"
#include "server/log/journal.h"

namespace timecache::server {

struct MapChangeLogsOptions {
  // Most memory of changes that are not stored yet; beyond it writes are
  // refused (JOURNAL_BACKLOG) until the disk has caught up.
  int64_t open_bytes_max = int64_t{64} << 20;
  // From a commit that found the disk full to the next one.
  std::chrono::microseconds retry_interval{100'000};
  // kCluster: of several nodes, and then only REPLICATED maps are in it, and
  // nothing is answered while another node may own it.
  JournalKind kind = JournalKind::kDisk;
  // Of kCluster: null, or what is asked before an answer from memory, besides
  // Journal::IsOwner.
  ConfirmOwner confirm = nullptr;
};

// The position of a write in a namespace that is not SYNC: all changes so far.
inline constexpr uint64_t kAllChanges = UINT64_MAX;

class MapChangeLog;

// The state that the logs of all maps share. Thread-safe.
class MapChangeLogs final : public ChangeLogs {
 public:
  explicit MapChangeLogs(std::unique_ptr<Journal> journal,
                         MapChangeLogsOptions options = {});
  // Commits the reported changes. All maps, and their driver, must be gone.
  ~MapChangeLogs() override;
  MapChangeLogs(const MapChangeLogs&) = delete;
  MapChangeLogs& operator=(const MapChangeLogs&) = delete;

  std::shared_ptr<ChangeLog> Begin(
      const std::shared_ptr<TimeCacheMap>& map) override;
  JournalKind kind() const override { return options_.kind; }
  absl::Status CheckRoom() const override;
  // JOURNAL_BACKLOG, or OK.
  absl::Status CheckBacklog() const;
  // The log of a rebuilt map, continued.
  std::shared_ptr<MapChangeLog> Resume(
      const std::shared_ptr<TimeCacheMap>& map);
  // That of a map with a log, which this has made.
  MapChangeLog* Of(const TimeCacheMap& map) const;

  // A round of the last process, for the Checkpointer of this one, which takes
  // it.
  void SetOpenCheckpoint(OpenCheckpoint open) { open_ = std::move(open); }
  OpenCheckpoint TakeOpenCheckpoint() { return std::exchange(open_, {}); }

  // A thread for work besides the commits and the answers, which must not
  // block.
  Completions& work() { return work_; }

  Journal& journal() { return *journal_; }
  // OK, or UNAVAILABLE (OWNERSHIP_LOST): then nothing that was read in memory may
  // be answered. Costs a branch, and Journal::IsOwner where nodes share it.
  absl::Status CheckOwner() const {
    return options_.kind != JournalKind::kCluster || journal_->IsOwner()
               ? absl::OkStatus()
               : OwnershipLost();
  }
  static absl::Status OwnershipLost();
  // Null: what CheckOwner says is enough.
  ReadConfirmations* confirmations() const { return confirmations_.get(); }
  // Calls `done` on another thread, once all calls are answered that waited for what
  // is stored by now.
  void WhenAnswered(std::function<void()> done) {
    answers_.Add(std::move(done));
  }
  // The approximate memory of changes that wait to be stored.
  int64_t open_bytes() const {
    return open_bytes_.load(std::memory_order_relaxed);
  }
  int64_t open_bytes_max() const { return options_.open_bytes_max; }
  // Whether the disk had no room at the last attempt, or none for the reserve,
  // and is retried: writes are refused.
  bool disk_full() const {
    return journal_->low_space() ||
           full_logs_.load(std::memory_order_relaxed) > 0;
  }

 private:
  friend class MapChangeLog;
  absl::Status NoRoom() const;

  // Memory for a record, of one that is stored: so a record need not grow step
  // by step, in pages that are new to the process. Empty if there is none.
  std::string TakeSpare() ABSL_LOCKS_EXCLUDED(spares_mu_);
  void Recycle(std::vector<std::string> records)
      ABSL_LOCKS_EXCLUDED(spares_mu_);

  const MapChangeLogsOptions options_;
  absl::Mutex spares_mu_;
  std::vector<std::string> spares_ ABSL_GUARDED_BY(spares_mu_);
  size_t spare_bytes_ ABSL_GUARDED_BY(spares_mu_) = 0;
  std::atomic<int64_t> open_bytes_{0};
  std::atomic<int> full_logs_{0};
  // Set and taken before use.
  OpenCheckpoint open_;
  Completions work_;
  // Permits ticks and answers calls.
  Completions answers_;
  std::shared_ptr<ReadConfirmations> confirmations_;
  // Destroyed before these threads, which run its last callbacks.
  std::unique_ptr<Journal> journal_;
};

// A map's changes are gathered, in a few buffers, in the *open* generation of
// records, while the previous one, which is *closing*, is being written to
// disk: one append at a time, and the changes of the meantime are the next one.
// So a change costs its encoding and a lock that few shards share, and a
// generation, of which there are thousands a second, a lock and a record for
// each buffer.
//
// An atomic batch is a record of its own, before those of the buffers: what is
// in the buffers of its shards by then becomes records before it. So it is
// behind earlier changes of its keys, and before later ones, and the journal
// has all of it or nothing. It is in one generation with them: while a
// generation is closed, none is added.
//
// Ticks and changes of groups are taken before the shards' changes: the changes
// that they depend on are in their generation or an older one. When a
// generation is stored, its tick is permitted, and the callbacks that wait for
// it run.
//
// A full disk: writes are refused as soon as the journal uses its reserve,
// which takes earlier changes, time and settlements. Once that is used up,
// callers that wait for the closing generation get DISK_FULL; it is retried
// until there is room. Its changes stay in the map: an operation that uses one
// of their keys meanwhile gets DISK_FULL, too, and so do a size and a scan.
class MapChangeLog final : public ChangeLog,
                           public std::enable_shared_from_this<MapChangeLog> {
 public:
  MapChangeLog(MapChangeLogs* logs, const std::shared_ptr<TimeCacheMap>& map);

  void Add(int shard, const Change& change) override;
  std::unique_ptr<AtomicChanges> NewAtomic() const override;
  void AddAtomic(std::unique_ptr<AtomicChanges> changes) override
      ABSL_LOCKS_EXCLUDED(batches_mu_);
  void AddTick(const Tick& tick) override ABSL_LOCKS_EXCLUDED(map_mu_);
  void AddGroup(const GroupChange& change) override { AddToGroups(change); }
  void AddRetained(const RetainedEvents& events) override {
    AddToGroups(events);
  }

  absl::Status CheckRoom() const override;
  absl::Status CheckBacklog() const override { return logs_->CheckBacklog(); }
  uint64_t PositionOf(uint64_t hash, bool writes) const override;
  void WhenKept(uint64_t position, Done done) override ABSL_LOCKS_EXCLUDED(mu_);
  bool IsKept(uint64_t position) const override {
    return IsStored(position) && logs_->confirmations() == nullptr &&
           logs_->CheckOwner().ok();
  }
  void WhenEntriesKept(Done done) override ABSL_LOCKS_EXCLUDED(mu_);
  void WhenAllKept(Done done) override ABSL_LOCKS_EXCLUDED(mu_);
  // Closes the open generation, unless another one is closing.
  void Flush() override;
  // Those who wait now get OWNERSHIP_LOST; what they wait for may be stored
  // later.
  void Abandon() ABSL_LOCKS_EXCLUDED(mu_);
  void AppendOptions(const NamespaceOptions& options) override
      ABSL_LOCKS_EXCLUDED(map_mu_);
  void AppendDeleted() override ABSL_LOCKS_EXCLUDED(map_mu_);
  void AppendCreated() ABSL_LOCKS_EXCLUDED(map_mu_);
  // Gives the map's log a new identity from here on (LogFork). The change
  // survives a power loss once it is stored, whatever the map's durability.
  void AppendFork() ABSL_LOCKS_EXCLUDED(map_mu_);

  void AppendTimeSkip(const TimeSkip& skip) ABSL_LOCKS_EXCLUDED(map_mu_);

  // Live entries are written again from now on, or have been.
  void AppendWalkBegins() ABSL_LOCKS_EXCLUDED(map_mu_);
  void AppendWalkEnds(const MapCounts& counts) ABSL_LOCKS_EXCLUDED(map_mu_);
  // How far that is, and what follows it, of what is stored.
  void AppendCheckpoint(const CheckpointMark& mark)
      ABSL_LOCKS_EXCLUDED(map_mu_);

 private:
  // The changes of some shards, each in its order.
  struct Buffer {
    explicit Buffer(const std::string& prefix) : open(prefix) {}

    absl::Mutex mu ABSL_ACQUIRED_AFTER(lock_order::kChanges)
        ABSL_ACQUIRED_BEFORE(lock_order::kJournal);
    ChangeRecord open ABSL_GUARDED_BY(mu);
    // Records that are large enough.
    std::vector<std::string> full ABSL_GUARDED_BY(mu);
    // The generation that it gathers for.
    uint64_t generation ABSL_GUARDED_BY(mu) = 1;
    // Bytes in it, and those of them that logs_->open_bytes_ counts.
    int64_t bytes ABSL_GUARDED_BY(mu) = 0;
    int64_t counted ABSL_GUARDED_BY(mu) = 0;
  };

  class BatchRecord;

  // A call that waits for a generation. `confirmed`: its records are sent later than
  // the call has read, so that they count shows that this node owned then.
  struct Waiter {
    Done done;
    bool confirmed = false;
  };

  bool IsStored(uint64_t position) const {
    return position <= kept_.load(std::memory_order_acquire);
  }
  void SetChanged();
  void AddDescription(std::string record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_mu_);
  void CountMapBytes(size_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(map_mu_);
  template <typename Item>
  void AddToGroups(const Item& item) ABSL_LOCKS_EXCLUDED(map_mu_);
  // From now on readers wait for keys whose changes are not stored.
  void BeginSync() ABSL_LOCKS_EXCLUDED(mu_);
  // Records the map's description, as changed by `change`.
  void AppendRecord(MapRecordKind kind,
                    absl::FunctionRef<void(MapDescription*)> change)
      ABSL_LOCKS_EXCLUDED(map_mu_);
  void AddWaiter(uint64_t position, Done done)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Finish(absl::Status status, Waiter waiter) const;
  void CloseGeneration();
  // Moves what it has to the end of `*to`.
  template <typename Records>
  static void TakeRecords(Buffer* buffer, Records* to)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(buffer->mu);
  // The closing one's, from here on: one thread at a time.
  void AppendNext();
  void Appended(const absl::Status& status, std::vector<std::string> records);
  // The memory of stored records, for reuse.
  void Kept();
  // Holds the open generation until so many callers wait for it, for a part of the
  // time that the last one took. False: there is nothing to wait for.
  bool HoldOpen(size_t callers) ABSL_LOCKS_EXCLUDED(mu_);
  void Full(absl::Status status);
  std::vector<Waiter> TakeWaiters() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Permits stored ticks, and runs callbacks: on the completions' thread, so
  // that the next sync runs meanwhile; or here, if there is no sync and nothing
  // to permit.
  void Answer(std::optional<Tick> permit, std::vector<Waiter> waiters,
              absl::Status status);

  MapChangeLogs* const logs_;
  const std::weak_ptr<TimeCacheMap> map_;
  const uint32_t partition_;
  const std::string prefix_;
  // SYNC: then open_keys_ has the keys of all later changes.
  std::atomic<bool> sync_;
  // Shard i has the one of i modulo their number.
  std::vector<std::unique_ptr<Buffer>> buffers_;
  // Atomic batches of the open generation, with what must be before them.
  // Acquired before the buffers' mutexes, and held while these end a generation.
  absl::Mutex batches_mu_ ABSL_ACQUIRED_AFTER(lock_order::kChanges)
      ABSL_ACQUIRED_BEFORE(lock_order::kJournal);
  std::vector<std::string> batches_ ABSL_GUARDED_BY(batches_mu_);
  int64_t batches_bytes_ ABSL_GUARDED_BY(batches_mu_) = 0;
  uint64_t batches_generation_ ABSL_GUARDED_BY(batches_mu_) = 1;
  // Of a generation, by its number modulo 2: at most two are not stored.
  std::array<OpenKeys, 2> open_keys_;

  // For changes of the whole map. Acquired under the map's locks.
  absl::Mutex map_mu_ ABSL_ACQUIRED_AFTER(lock_order::kChanges)
      ABSL_ACQUIRED_BEFORE(lock_order::kJournal);
  // With retained events.
  ChangeRecord groups_ ABSL_GUARDED_BY(map_mu_);
  std::vector<std::string> full_groups_ ABSL_GUARDED_BY(map_mu_);
  MapDescription description_ ABSL_GUARDED_BY(map_mu_);
  // No change is recorded after the map's deletion: it would be recreated.
  bool deleted_ ABSL_GUARDED_BY(map_mu_) = false;
  // Records of the open generation that are of the map as a whole.
  std::vector<std::string> descriptions_ ABSL_GUARDED_BY(map_mu_);
  // Bytes of all these, which logs_->open_bytes_ counts.
  int64_t map_bytes_ ABSL_GUARDED_BY(map_mu_) = 0;
  std::optional<Tick> tick_ ABSL_GUARDED_BY(map_mu_);
  // Whether the open generation is synced also where the map is not SYNC.
  bool sync_open_ ABSL_GUARDED_BY(map_mu_) = false;

  // Whether the open generation may have something, and whether one is closing:
  // who sets the latter commits.
  std::atomic<bool> changed_{false};
  std::atomic<bool> closing_{false};
  std::atomic<bool> full_{false};

  // Held briefly; no other lock is acquired under it.
  absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kChanges)
      ABSL_ACQUIRED_BEFORE(lock_order::kJournal);
  // The numbers of the open generation and of the last one that is stored; one
  // in between is closing. They change under mu_.
  std::atomic<uint64_t> open_{1};
  std::atomic<uint64_t> kept_{0};
  // By the generation, as open_keys_.
  std::array<std::vector<Waiter>, 2> waiters_ ABSL_GUARDED_BY(mu_);
  // How many of them the open one is held for, closing_ being set; 0: it is not.
  size_t held_for_ ABSL_GUARDED_BY(mu_) = 0;
  // What waiters get while full_.
  absl::Status refusal_ ABSL_GUARDED_BY(mu_);

  // Of the closing generation.
  std::deque<std::string> records_;
  std::optional<Tick> closing_tick_;
  bool closing_sync_ = false;
  bool closing_is_empty_ = false;
  int64_t closing_counted_ = 0;
  std::chrono::steady_clock::time_point closing_began_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_MAP_CHANGE_LOG_H_

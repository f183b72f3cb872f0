// The expiry log of one map: the events of dead entries, in order of death, for
// as long as they are retained. Watchers are cursors on it: a thousand of them
// share the same bytes, and a slow watcher costs only its cursor.

#ifndef TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRY_LOG_H_
#define TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRY_LOG_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/base/lock_order.h"
#include "server/base/memory_reclaimer.h"
#include "server/engine/store/event_batch.h"
#include "server/engine/store/expiry_types.h"
#include "server/engine/store/selected_events.h"

namespace timecache::server {

// Thread-safe. Append and Read are O(1) a batch, however many cursors there are
// and however far they are behind; Append wakes waiting cursors.
// Retention ends early where memory runs short, see MemoryReclaimer.
class ExpiryLog final : public EventHolder {
 public:
  using Point = LogPoint;
  using Start = LogStart;
  using Chunk = EventChunk;

  // A reader's position. Used by one thread at a time; must not outlive its
  // log, nor be destroyed from its own `wake`.
  class Cursor {
   public:
    ~Cursor();
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    // Takes whole batches up to `max_bytes` as they are encoded and
    // `max_events`, with `at_least_one` one if there is one.
    Chunk Read(int64_t max_bytes, int max_events = kMaxEventBatchEvents,
               bool at_least_one = true);
    // Where it stands: after what it has read.
    Point point() const;

   private:
    friend class ExpiryLog;
    Cursor(ExpiryLog* log, std::function<void()> wake)
        : log_(log), wake_(std::move(wake)) {}

    ExpiryLog* const log_;
    const std::function<void()> wake_;
    // Guarded by log_->mu_.
    uint64_t first_seq_ = 0;
    uint64_t next_seq_ = 0;
    int64_t watermark_us_ = 0;
    // Its place in log_->waiting_.
    size_t waiting_at_ = kNotWaiting;
    static constexpr size_t kNotWaiting = SIZE_MAX;
  };

  // Receives every batch as it is appended: for a consumer group, which keeps
  // unsettled events beyond the log's retention.
  class Follower {
   public:
    virtual ~Follower() = default;
    // `first_event` is the number of its first event, greater than all before;
    // the others follow. Under the log's lock: must be quick, must not block
    // and not call the log.
    virtual void OnAppend(uint64_t first_event,
                          const std::shared_ptr<const EventBatch>& batch) = 0;
    // Which events it wants: of keys that begin with this. Constant.
    virtual absl::string_view key_prefix() const { return {}; }
    // In place of OnAppend, of a batch that has others.
    virtual void OnAppendSelected(uint64_t /*first_event*/,
                                  const SelectedEvents& /*selected*/) {}
    // The memory that it keeps, and dropping the oldest of it: as EventHolder,
    // under the log's lock. `kind` is kBacklog or kHeld.
    virtual EventHolder::Holding Backlog(EventHolder::Kind /*kind*/) const {
      return {};
    }
    // The memory that the log's followers keep, each batch once.
    virtual int64_t KeptTogether() const { return 0; }
    virtual bool DropBacklog(EventHolder::Kind /*kind*/, int64_t /*bytes*/) {
      return false;
    }
  };

  // What its events are: deaths, or changes by operations, which are dropped
  // first where memory runs short.
  enum class Content : uint8_t { kDeaths, kChanges };

  // `first_event` is the number of the first event, at least 1. `id` is that of
  // the log that this one goes on with; 0: random.
  ExpiryLog(int64_t retention_us, int64_t retention_bytes,
            uint64_t first_event = 1, uint64_t id = 0,
            Content content = Content::kDeaths);
  ~ExpiryLog() override;

  uint64_t id() const { return id_; }
  // The log of which this is a copy. Set before there is a cursor.
  void SetFork(const LogFork& fork) ABSL_LOCKS_EXCLUDED(mu_);
  LogFork fork() const ABSL_LOCKS_EXCLUDED(mu_);
  // Makes it a copy of itself from here on, with another identity in each copy.
  // Twice at one point is once: the first identity is then of no use.
  void Fork() ABSL_LOCKS_EXCLUDED(mu_);
  // The number of the next event.
  uint64_t next_event() const ABSL_LOCKS_EXCLUDED(mu_);
  // The memory of the retained events.
  int64_t bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  // Sets the next event's number. Before there is any event.
  void BeginAt(uint64_t first_event) ABSL_LOCKS_EXCLUDED(mu_);

  // Whether an event that is appended now can have a reader. If not, Skip it
  // instead of gathering its bytes.
  bool Wanted() const ABSL_LOCKS_EXCLUDED(mu_);

  // Appends events that died no earlier than those before them, and wakes the
  // cursors. `watermark_us` as in AdvanceWatermark, with this batch counted.
  void Append(std::shared_ptr<const EventBatch> batch, int64_t now_us,
              int64_t watermark_us) ABSL_LOCKS_EXCLUDED(mu_);
  // Appends changes after the watermark, which is the batch's time from now on.
  // Does not wake cursors: Wake does.
  void AppendChanges(std::shared_ptr<EventBatch> batch, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  // Counts events that no reader receives.
  void Skip(uint64_t events) ABSL_LOCKS_EXCLUDED(mu_);

  // States that all events of deaths at or before `watermark_us` have been
  // appended. A lower watermark than before changes nothing. Does not wake
  // cursors: they read it at their next heartbeat.
  void AdvanceWatermark(int64_t watermark_us) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t watermark_us() const ABSL_LOCKS_EXCLUDED(mu_);

  // Starts a cursor with the oldest retained event, or with deaths after
  // `now_us`: `pending` events of earlier deaths have not been appended or
  // skipped yet. `wake` is called when there is something new to read, once
  // until the cursor has read to the end again, from the publishing thread and
  // under the log's lock: it must be quick, must not block and not call the
  // log.
  std::unique_ptr<Cursor> Subscribe(Start start, int64_t now_us,
                                    uint64_t pending,
                                    std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Starts a cursor at the position of another one; the first Read's `lost`
  // counts events that are no longer retained. A point of another log:
  // FAILED_PRECONDITION (LOG_CHANGED). One that this log has not reached:
  // OUT_OF_RANGE (RESUME_POINT_AHEAD).
  absl::StatusOr<std::unique_ptr<Cursor>> Resume(const Point& point,
                                                 uint64_t pending,
                                                 std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Passes to `follower` all batches appended from now on, and, with kEarliest,
  // the retained ones before the call returns. Returns the number of the first
  // event that the follower must process: with kNow, lower ones died at or
  // before the call. `pending` as in Subscribe. `follower` must outlive
  // Unfollow.
  uint64_t Follow(Follower* follower, Start start, uint64_t pending)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The same from a position on, errors as Resume's. `made` has the selections
  // of the follower's key_prefix.
  absl::StatusOr<LogPlace> FollowAt(Follower* follower,
                                    const LogPosition& position,
                                    uint64_t pending, const Selections& made)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Calls `move` with a position's place, and with what is retained from there
  // on: under the log's lock, so that nothing is appended meanwhile. Errors as
  // Resume's.
  struct Followed {
    uint64_t first_event;
    SelectedEvents events;
  };
  using Move =
      absl::FunctionRef<void(const LogPlace& place, std::vector<Followed>)>;
  absl::StatusOr<LogPlace> MoveTo(const LogPosition& position, uint64_t pending,
                                  const Selections& made, Move move)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Those of the retained batches. O(events), not under the lock.
  Selections SelectRetained(absl::string_view key_prefix) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // What is retained from this event on.
  std::vector<Followed> RetainedFrom(uint64_t event,
                                     const Selections& made) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // It is not called any more once this returns.
  void Unfollow(Follower* follower) ABSL_LOCKS_EXCLUDED(mu_);

  void SetRetention(int64_t retention_us, int64_t retention_bytes,
                    int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);
  // Drops events past their retention that every cursor has read.
  void Trim(int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);
  // Until then no event is too old, and all are Wanted: those who read the log
  // before a restart get time to resume.
  void HoldUntil(int64_t until_us) ABSL_LOCKS_EXCLUDED(mu_);
  // Time that does not count: the retained events are to stay for so much
  // longer. O(batches).
  void SkipTime(int64_t us) ABSL_LOCKS_EXCLUDED(mu_);
  // When Trim should be called next; kNeverUs if never. Events that a cursor
  // has yet to read are checked again after kTrimRetryUs.
  int64_t NextTrimUs(int64_t now_us) const ABSL_LOCKS_EXCLUDED(mu_);
  static constexpr int64_t kTrimRetryUs = 1'000'000;
  // Of dropped events it remembers what their keys began with, for so many
  // ranges of them, and so many bytes.
  static constexpr size_t kMaxDroppedRanges = 64;
  static constexpr size_t kMaxDroppedPrefix = 64;

  // The number of the oldest retained event; if there is none, of the next one.
  uint64_t retained_event() const ABSL_LOCKS_EXCLUDED(mu_);
  // While the log is rebuilt it retains what DropBefore leaves, of any age and
  // whether or not it is Wanted: at least what the original log had. By bytes,
  // one batch more than otherwise, as its batches may be larger.
  void SetReplaying(bool replaying) ABSL_LOCKS_EXCLUDED(mu_);
  // While it is rebuilt: the original log has dropped the events before this
  // one. So has this one by the end, where new readers begin as those of the
  // original did.
  void DropBefore(uint64_t event) ABSL_LOCKS_EXCLUDED(mu_);

  // A batch as the log has it.
  struct Retained {
    uint64_t first_seq;
    // Plus all time since that did not count.
    int64_t appended_us;
    std::shared_ptr<const EventBatch> batch;

    uint64_t end_seq() const {
      return first_seq + static_cast<uint64_t>(batch->size());
    }
  };
  // The last one with an event before this one, if there is any.
  // O(log batches).
  std::optional<Retained> LastBefore(uint64_t event) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // While the log is rebuilt: puts a batch before those that it has, of which
  // the first follows it. Events that are there already are left out; no change
  // if others are missing in between, which have been dropped since.
  void Restore(Retained retained) ABSL_LOCKS_EXCLUDED(mu_);

  // For MemoryReclaimer. The next Read's `lost` of a cursor counts the dropped
  // events that it had not read.
  Holding Held(Kind kind) const override ABSL_LOCKS_EXCLUDED(mu_);
  bool Drop(Kind kind, int64_t bytes) override ABSL_LOCKS_EXCLUDED(mu_);

  // Wakes all cursors; each reads to the end and then finds `closed`.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  struct Statistics {
    uint64_t events = 0;
    int64_t bytes = 0;
    // When the oldest was appended; kNeverUs if there is none.
    int64_t oldest_us = kNeverUs;
    int64_t cursors = 0;
    // Events from where each cursor began to the end of the log, or to where
    // that was when the cursor ended. Always delivered + lost + left + pending,
    // although it is made of places alone, and they of what was read.
    uint64_t owed = 0;
    // In all Reads.
    uint64_t delivered = 0;
    uint64_t lost = 0;
    // Events that cursors had not read when they ended; a cursor that resumes
    // there gets them again.
    uint64_t left = 0;
    // Events that cursors have yet to read, of all and of the one farthest
    // behind; and when the first retained one of the latter died, kNeverUs if
    // there is none.
    uint64_t pending = 0;
    uint64_t max_pending = 0;
    int64_t oldest_unread_us = kNeverUs;
    // Events dropped before their retention ended, for their memory.
    uint64_t reclaimed = 0;
  };
  // O(cursors).
  Statistics GetStatistics() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // Batches to free outside of the lock.
  using Dropped = std::vector<std::shared_ptr<const EventBatch>>;

  void AppendLocked(std::shared_ptr<const EventBatch> batch,
                    const std::vector<Selections>& selections, int64_t now_us,
                    Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Add(Cursor* cursor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remove(Cursor* cursor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t EventsFrom(uint64_t seq) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t RetainedEventLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return retained_.empty() ? next_seq_ : retained_.front().first_seq;
  }
  void TrimLocked(int64_t now_us, Dropped* dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PushFront(Retained retained) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<LostEvents> LostFrom(uint64_t seq) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remember(const Retained& dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropOldest(Dropped* dropped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropBeforeLocked(uint64_t event, Dropped* dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Removes the cursor from where it is counted, before its position changes.
  void Unplace(const Cursor& cursor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether every cursor has read the oldest batch.
  bool IsOldestRead() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return cursors_at_.empty() ||
           cursors_at_.begin()->first >= retained_.front().end_seq();
  }
  bool CanDrop(Kind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool DropRetained(Kind kind, int64_t bytes, Dropped* dropped)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Follower* LargestFollower(Kind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitMore(Cursor* cursor) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Chunk ReadLocked(Cursor* cursor, int64_t max_bytes, int max_events,
                   bool at_least_one) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status CheckPoint(const Point& point, uint64_t pending) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<LogPlace> Locate(const LogPosition& position,
                                  uint64_t pending) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Followed> RetainedFromLocked(uint64_t event,
                                           const Selections& made) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<Selections> SelectNew(
      const std::shared_ptr<const EventBatch>& batch) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the point belongs to this log.
  bool IsOwn(const Point& point) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  uint64_t PointId() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return fork_.id == 0 ? id_ : fork_.id;
  }

  const uint64_t id_;
  const Content content_;

  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kLog)
      ABSL_ACQUIRED_BEFORE(lock_order::kGroup);
  int64_t retention_us_ ABSL_GUARDED_BY(mu_);
  int64_t retention_bytes_ ABSL_GUARDED_BY(mu_);
  // INT64_MIN once it is over.
  int64_t hold_until_us_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  std::deque<Retained> retained_ ABSL_GUARDED_BY(mu_);
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // Events that were dropped, in order and without gaps, of which the last was
  // before `dropped_end_`.
  std::vector<LostEvents> dropped_ ABSL_GUARDED_BY(mu_);
  uint64_t dropped_end_ ABSL_GUARDED_BY(mu_) = 0;
  // How many cursors are at each position: at few, mostly ends of batches.
  absl::btree_map<uint64_t, int64_t> cursors_at_ ABSL_GUARDED_BY(mu_);
  // The next event's number: it counts appended and skipped events.
  uint64_t next_seq_ ABSL_GUARDED_BY(mu_);
  // The epoch while no watermark is known: it is a valid time in every client
  // language.
  int64_t watermark_us_ ABSL_GUARDED_BY(mu_) = 0;
  // Of Reads, and of cursors that have ended.
  uint64_t delivered_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t lost_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t left_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t owed_to_ended_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t reclaimed_ ABSL_GUARDED_BY(mu_) = 0;
  LogFork fork_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  bool replaying_ ABSL_GUARDED_BY(mu_) = false;
  // See DropBefore.
  uint64_t replayed_from_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_set<Cursor*> cursors_ ABSL_GUARDED_BY(mu_);
  std::vector<Follower*> followers_ ABSL_GUARDED_BY(mu_);
  // Of these, those with a key_prefix.
  std::atomic<int> selecting_{0};
  // Those that have read to the end, and have not been woken since.
  std::vector<Cursor*> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRY_LOG_H_

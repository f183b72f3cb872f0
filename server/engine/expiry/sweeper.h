// Turns dead buckets into events.

#ifndef TIMECACHED_SERVER_ENGINE_EXPIRY_SWEEPER_H_
#define TIMECACHED_SERVER_ENGINE_EXPIRY_SWEEPER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/base/lock_order.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/shard/change.h"
#include "server/engine/shard/shard.h"
#include "server/engine/store/statistics.h"

namespace timecache::server {

// The entries that died at one instant in all shards of a map.
struct DeadBucket {
  struct Part {
    Shard* shard;
    std::unique_ptr<Generation> generation;
  };

  int64_t death_us = 0;
  Cause cause = Cause::kExpired;
  // The bucket width in force when it died: later publication breaks the bound.
  int64_t width_us = 0;
  std::vector<Part> parts;

  // The number after those of its events; the sweeper's Add sets it.
  uint64_t end_event = 0;
  // Of a journaled map: the time of the tick that permits its events.
  int64_t permitted_us = kNeverUs;
  // Whether its events have no numbers and are not published: see MapReplay.
  bool silent = false;

  void Add(Shard* shard, std::unique_ptr<Generation> generation) {
    entries += generation->entries;
    bytes += generation->bytes;
    parts.push_back({shard, std::move(generation)});
  }

  // In all parts: entries, and bytes of their keys and values.
  int64_t entries = 0;
  int64_t bytes = 0;
};

// A queue of dead buckets, walked in order of death. A record of a dead bucket
// was live if and only if an index slot still refers to it. (An overwrite or a
// removal also marks the record that it replaces as dead; compaction and what
// reads live records go by that mark, the sweep by the index alone.)
//
// Of a map that is journaled, a bucket is walked once it is Permitted, its
// events have the time of the tick that permits them, which is in the journal,
// and those of each of its parts come in the order of their versions: an order
// that the entries determine, not where they lie. This costs 24 bytes an entry
// of the part, and a merge of what each step of its walk has sorted: no step
// takes longer because the part is large.
//
// Thread-safe. Records are read outside of any shard's lock, which is taken for
// Shard::kSweepLockRecords erasures at a time.
class Sweeper {
 public:
  // Publishes the events of the map `name`. `log` is not owned and must outlive
  // the sweeper.
  Sweeper(absl::string_view name, ExpiryLog* log, bool journaled)
      : name_(name),
        log_(log),
        journaled_(journaled),
        end_event_(log->next_event()) {}

  // Adds buckets that died no earlier than those before, and states that
  // besides these nothing died at or before `complete_us`.
  void Add(std::vector<DeadBucket> buckets, int64_t complete_us)
      ABSL_LOCKS_EXCLUDED(queue_mu_);

  // Walks up to `max_records` records of what has died by `now_us`, appends
  // their events to the log and moves its watermark. Returns whether something
  // is left, what died after `now_us` included.
  bool Step(int64_t now_us, int max_records)
      ABSL_LOCKS_EXCLUDED(step_mu_, queue_mu_);

  // Buckets that wait before IsBehind.
  static constexpr size_t kMaxWaiting = 1'024;
  // Whether so many wait that a caller that kills more should call Step.
  bool IsBehind() const ABSL_LOCKS_EXCLUDED(queue_mu_);

  // Whether a bucket waits for Step, and may be walked.
  bool HasWork() const ABSL_LOCKS_EXCLUDED(queue_mu_);

  // The number of the next event after all that was added.
  uint64_t end_event() const ABSL_LOCKS_EXCLUDED(queue_mu_);
  // See ExpiryLog::BeginAt.
  void BeginAt(uint64_t first_event) ABSL_LOCKS_EXCLUDED(queue_mu_);
  // The events before this one were published, and are no longer known: the log
  // skips them. Only while no bucket waits.
  void SkipTo(uint64_t event) ABSL_LOCKS_EXCLUDED(queue_mu_);
  // Events before the tick's may be published, and so may its watermark.
  // Returns whether a bucket waits for Step now.
  bool Permit(const Tick& tick) ABSL_LOCKS_EXCLUDED(queue_mu_);

  // Moves the watermark up to what Add has stated, or just before the first
  // bucket that waits.
  void PublishWatermark() ABSL_LOCKS_EXCLUDED(queue_mu_);

  // Starts a cursor on the log after all events that have been added here and
  // are Permitted.
  std::unique_ptr<ExpiryLog::Cursor> Subscribe(ExpiryLog::Start start,
                                               int64_t now_us,
                                               std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(step_mu_, queue_mu_);
  // The same at another cursor's position. Errors as ExpiryLog::Resume.
  absl::StatusOr<std::unique_ptr<ExpiryLog::Cursor>> Resume(
      const ExpiryLog::Point& point, std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(step_mu_, queue_mu_);
  // As those of ExpiryLog.
  absl::StatusOr<LogPlace> FollowAt(ExpiryLog::Follower* follower,
                                    const LogPosition& position,
                                    const Selections& made)
      ABSL_LOCKS_EXCLUDED(step_mu_, queue_mu_);
  absl::StatusOr<LogPlace> MoveTo(const LogPosition& position,
                                  const Selections& made, ExpiryLog::Move move)
      ABSL_LOCKS_EXCLUDED(step_mu_, queue_mu_);

  // The statistics begin: of what waits, and of all to come. What died by
  // `up_since_us` was due while there was no server: that it is late is not the
  // sweeper's fault.
  void BeginStatistics(int64_t up_since_us) ABSL_LOCKS_EXCLUDED(queue_mu_);

  struct Statistics {
    // Of all that was added: who kills a bucket finds it counted.
    std::array<uint64_t, 3> died_by_cause = {};
    // Of what has been published, but for that which died while there was no
    // server.
    DurationHistogram lateness;
    uint64_t bound_violations = 0;
    // Of those that expired, the rest.
    uint64_t expired_while_down = 0;
  };
  Statistics GetStatistics() const ABSL_LOCKS_EXCLUDED(queue_mu_);

 private:
  // A record that was live when its generation died.
  struct Live {
    uint64_t version;
    const Segment* segment;
    uint32_t offset;
  };
  // Some of Place::ordered, in the order of their versions.
  struct Run {
    // That of the first one, which is at `next`.
    uint64_t version;
    size_t next;
    size_t end;

    // The top of a heap has the lowest version.
    friend bool operator<(const Run& a, const Run& b) {
      return a.version > b.version;
    }
  };
  // The steps of a part of a bucket. Of a map that is not journaled, the walk
  // publishes and frees, too.
  enum class Phase : uint8_t { kBegin, kWalk, kDeliver, kFree };
  // The position of the walk in the first bucket.
  struct Walk {
    size_t part = 0;
    Phase phase = Phase::kBegin;
    // The record that is walked or freed next.
    SegmentId segment = kNoSegment;
    uint32_t offset = 0;
    int64_t live_in_part = 0;
    int64_t live = 0;
    // Events of this bucket that the log has, and the bytes of their keys and
    // values.
    int64_t appended = 0;
    int64_t appended_bytes = 0;
    bool wanted = false;
    std::shared_ptr<EventBatch> batch;
    // Of a map that is journaled: the part's events, in sorted runs of which
    // each step of the walk adds one at most; once the walk is through, these
    // are a heap.
    std::vector<Live> ordered;
    std::vector<Run> runs;
  };

  void CountDeaths(const DeadBucket& bucket)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mu_);
  // Of deaths at or before `until_us`.
  uint64_t Pending(int64_t until_us = INT64_MAX) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_, queue_mu_);
  uint64_t PendingBefore(const LogPosition& position) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_, queue_mu_);
  bool IsPermitted(const DeadBucket& bucket) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mu_) {
    return !journaled_ || bucket.silent ||
           bucket.end_event <= permitted_.next_event;
  }
  DeadBucket* Front() ABSL_LOCKS_EXCLUDED(queue_mu_);
  int64_t WatermarkAfter(size_t buckets) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_mu_);
  int StepPart(const DeadBucket& bucket, int64_t now_us, int max_records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);
  int WalkSegment(const DeadBucket& bucket, int64_t now_us, int max_records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);
  int DeliverOrdered(const DeadBucket& bucket, int64_t now_us, int max_records)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);
  void AddRun(size_t begin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);
  int FreeSegments(const DeadBucket::Part& part, int max_segments)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);
  void EndPart(const DeadBucket::Part& part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);
  void Deliver(const DeadBucket& bucket, const Record& record, int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);
  void AppendBatch(int64_t now_us, int64_t watermark_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);
  void Finish(const DeadBucket& bucket, int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(step_mu_);

  const std::string name_;
  ExpiryLog* const log_;
  const bool journaled_;

  // One step at a time.
  absl::Mutex step_mu_ ABSL_ACQUIRED_AFTER(lock_order::kSweep)
      ABSL_ACQUIRED_BEFORE(queue_mu_, lock_order::kShard);
  Walk walk_ ABSL_GUARDED_BY(step_mu_);

  // Held for moments only.
  mutable absl::Mutex queue_mu_ ABSL_ACQUIRED_AFTER(lock_order::kShard)
      ABSL_ACQUIRED_BEFORE(lock_order::kLog);
  // Only Step removes; the first bucket is Step's to read.
  std::deque<DeadBucket> queue_ ABSL_GUARDED_BY(queue_mu_);
  int64_t complete_us_ ABSL_GUARDED_BY(queue_mu_) = INT64_MIN;
  uint64_t end_event_ ABSL_GUARDED_BY(queue_mu_);
  Tick permitted_ ABSL_GUARDED_BY(queue_mu_) = {INT64_MIN, 0};
  Statistics statistics_ ABSL_GUARDED_BY(queue_mu_);
  int64_t up_since_us_ ABSL_GUARDED_BY(queue_mu_) = INT64_MIN;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_EXPIRY_SWEEPER_H_

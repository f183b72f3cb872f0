// The entries about to die in one map: their cursors, and the events that these
// share.

#ifndef TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRING_FEED_H_
#define TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRING_FEED_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/base/clock.h"
#include "server/base/lock_order.h"
#include "server/engine/shard/shard.h"
#include "server/engine/store/event_batch.h"
#include "server/engine/store/expiry_types.h"

namespace timecache::server {

class ExpiringCursor;

// Creates the cursors of one map, and finds for all of them the entries put
// into buckets that they have passed: each shard lists the generations that
// change, and a look reads the new entries in them, once, into events that all
// cursors share. A cursor that reads too late for these walks the live buckets
// again, so the feed may drop them at any time, and its memory is bounded
// whatever the number of cursors and buckets.
//
// Thread-safe. Without cursors a put pays for one comparison.
class ExpiringFeed {
 public:
  using Shards = std::vector<std::unique_ptr<Shard>>;

  // Events that are kept for cursors, and for how long: a delivered entry may
  // have been removed up to this long ago.
  static constexpr int64_t kMaxBytes = int64_t{8} << 20;
  static constexpr int64_t kMaxAgeUs = 5 * kMicrosPerSecond;
  static constexpr size_t kMaxCursors = 256;
  // Generations of all shards that are listed as changed between two looks.
  static constexpr size_t kMaxChanges = size_t{1} << 16;

  // Of the map `name`. `shards` is not owned and must outlive the cursors.
  ExpiringFeed(absl::string_view name, const Shards* shards)
      : name_(name), shards_(shards) {}

  using Options = ExpiringOptions;

  // A cursor on entries that have at most the lead time left. `wake` is called
  // when the map is closed: under a lock, so it must be quick and not call the
  // cursor. RESOURCE_EXHAUSTED (MAX_EXPIRING_WATCHERS).
  absl::StatusOr<std::unique_ptr<ExpiringCursor>> Subscribe(
      Options options, std::function<void()> wake) ABSL_LOCKS_EXCLUDED(mu_);

  // Wakes all cursors; they find `closed`.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  int64_t cursors() const ABSL_LOCKS_EXCLUDED(mu_);
  // Of the events that are kept.
  int64_t memory_bytes() const ABSL_LOCKS_EXCLUDED(mu_);
  // Looks that were started, and records that they have read.
  struct Statistics {
    uint64_t looks = 0;
    uint64_t records = 0;
  };
  Statistics GetStatistics() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class ExpiringCursor;

  using BatchRef = std::shared_ptr<const EventBatch>;

  // A look in progress.
  struct Look {
    int64_t begun_us = 0;
    size_t shard = 0;
    uint64_t until_change = 0;
    // It has missed entries, or found more than is kept.
    bool missed = false;
    int64_t bytes = 0;
    absl::btree_map<int64_t, std::vector<std::shared_ptr<EventBatch>>> batches;
  };

  // --- For cursors.

  void Remove(ExpiringCursor* cursor) ABSL_LOCKS_EXCLUDED(mu_);
  // The cursor has passed, or is about to, buckets up to this death.
  void Track(ExpiringCursor* cursor, int64_t until_us) ABSL_LOCKS_EXCLUDED(mu_);
  // The number of the next look to begin.
  uint64_t NextLook() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether that look is finished; if not, does a step of it.
  bool FinishLook(uint64_t number, int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);
  enum class Taking : uint8_t { kAll, kSome, kMissed };
  // Appends to `*batches` what the cursor has not taken of buckets up to
  // `front_us`, as far as there is room for these events and bytes; kMissed if
  // some of it is gone. Sets `*until_us`: what was put before has been taken.
  Taking Take(ExpiringCursor* cursor, int64_t front_us, int64_t now_us,
              int* events_left, int64_t* bytes_left,
              std::vector<BatchRef>* batches, int64_t* until_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  bool closed() const ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t NextBatch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return first_batch_ + batches_.size();
  }
  void LookStep(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Found(int64_t death_us, const Record& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndLook() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TrackShards(bool track) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const Shards* const shards_;

  // The latest death that any cursor has passed, or is about to.
  std::atomic<int64_t> track_until_us_{INT64_MIN};

  // Taken before the shards' locks.
  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kSweep)
      ABSL_ACQUIRED_BEFORE(lock_order::kShard);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_set<ExpiringCursor*> cursors_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<Look> look_ ABSL_GUARDED_BY(mu_);
  uint64_t begun_looks_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t ended_looks_ ABSL_GUARDED_BY(mu_) = 0;
  // When the last finished look started.
  int64_t looked_us_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  uint64_t records_ ABSL_GUARDED_BY(mu_) = 0;
  // The batches that looks found, from number first_batch_ on.
  std::deque<BatchRef> batches_ ABSL_GUARDED_BY(mu_);
  uint64_t first_batch_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRING_FEED_H_

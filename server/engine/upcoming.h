// What is going to die: the live entries of one map whose death comes within a
// lead time, told while they can still be touched.

#ifndef TIMECACHED_SERVER_ENGINE_UPCOMING_H_
#define TIMECACHED_SERVER_ENGINE_UPCOMING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/engine/clock.h"
#include "server/engine/event_batch.h"
#include "server/engine/live_place.h"
#include "server/engine/shard.h"

namespace timecache {

// Makes cursors on the live buckets of a map and knows them, so that they hear
// of its end. Nothing is kept for them beside: a put does not know of them.
//
// Thread-safe.
class Upcoming {
 public:
  using Shards = std::vector<std::unique_ptr<Shard>>;

  // What is put with less than the lead time left is found this much later at
  // the most: one bucket width, or this.
  static constexpr int64_t kMaxSoonUs = kMicrosPerSecond;
  // Short locks that one Read takes at most: some milliseconds.
  static constexpr int kMaxReadSteps = 256;

  // What one Read finds.
  struct Chunk {
    // Of entries that are alive, with the cause kExpiring. In order of death
    // until a Read with `more` unset.
    std::vector<std::shared_ptr<const EventBatch>> batches;
    // Everything that was in the map at this moment, and was going to die
    // within the lead time, has been told or has died since. Never goes back;
    // 0 until all that was there at the start has been told.
    int64_t watermark_us = 0;
    // Whether there is more to read now.
    bool more = false;
    // The map is gone: nothing comes after this.
    bool closed = false;
  };

  // A reader's place. It goes in rounds: each looks which buckets within the
  // lead time have something new, and reads that. An entry is told once for
  // each death that it is going to die, again where it is written anew in its
  // bucket in another size, and maybe twice where compaction moves it during a
  // round, or was put in the microsecond of one. What dies, is killed or
  // removed before its turn is not told.
  //
  // Used by one thread at a time; must not outlive its map, nor be destroyed
  // from its own `wake`. Memory, by estimate: 100 B for each live bucket and
  // shard within the lead time. A bucket with nothing new costs O(1) a round.
  class Cursor {
   public:
    ~Cursor();
    Cursor(const Cursor&) = delete;
    Cursor& operator=(const Cursor&) = delete;

    // Goes on with the round, or begins one if it is due. Takes at most
    // kMaxEventBatchEvents events and `max_bytes` of keys and values, itself at
    // most kMaxEventBatchBytes, or a single event with more.
    Chunk Read(int64_t now_us, int64_t max_bytes);

    // Lets the next Read begin a round, unless one is under way.
    void Refresh() {
      if (round_us_ == kNeverUs) next_round_us_ = INT64_MIN;
    }

    // When the next round is due: when the next bucket comes within the lead
    // time, or something may have been put there.
    int64_t NextDueUs() const { return next_round_us_; }

   private:
    friend class Upcoming;
    // A bucket's part in one shard that has something new.
    using Work = std::pair<int64_t, size_t>;
    class Writer;

    Cursor(Upcoming* upcoming, int64_t lead_us, std::function<void()> wake);
    void BeginRound(int64_t now_us);
    void LookStep(int64_t now_us);
    void ReadStep(int64_t now_us, Writer* writer);

    Upcoming* const upcoming_;
    const int64_t lead_us_;
    const std::function<void()> wake_;

    int64_t watermark_us_ = 0;
    int64_t next_round_us_ = INT64_MIN;
    // When the round that is under way began; kNeverUs between rounds.
    int64_t round_us_ = kNeverUs;
    // Where the look stands: behind this death in this shard.
    size_t look_shard_ = 0;
    int64_t look_death_us_ = 0;
    // What it has found, in order of death once it is through, and how much of
    // it has been read.
    std::vector<Work> work_;
    size_t work_done_ = 0;
    // For each shard, by death.
    std::vector<absl::btree_map<int64_t, LivePlace>> places_;
  };

  // Of the map `name`, its events in `format`. `shards` and `format` are not
  // owned and must outlive the cursors, `format` their batches, too.
  Upcoming(absl::string_view name, const EventFormat* format,
           const Shards* shards)
      : name_(name), format_(format), shards_(shards) {}

  // A cursor on what has at most `lead_us` left. `wake` is called when the map
  // is closed: under a lock, so it must be quick and not call the cursor.
  std::unique_ptr<Cursor> Subscribe(int64_t lead_us, std::function<void()> wake)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Wakes all cursors; they find `closed`.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

  int64_t cursors() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool closed() const ABSL_LOCKS_EXCLUDED(mu_);

  const std::string name_;
  const EventFormat* const format_;
  const Shards* const shards_;

  mutable absl::Mutex mu_;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_set<Cursor*> cursors_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_ENGINE_UPCOMING_H_

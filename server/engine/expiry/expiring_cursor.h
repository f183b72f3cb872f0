// One reader of entries that are about to die: the live entries of a map that
// die within a lead time, delivered while they can still be touched.

#ifndef TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRING_CURSOR_H_
#define TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRING_CURSOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "server/base/clock.h"
#include "server/base/memory_budget.h"
#include "server/engine/expiry/expiring_feed.h"
#include "server/engine/shard/live_position.h"
#include "server/engine/store/expiry_types.h"

namespace timecache::server {

// A reader's position in the order of deaths, its front: all entries in buckets
// up to the front have been delivered. It works in rounds. Each takes from the
// feed the entries that were put into buckets that the front has passed, and
// then moves the front to now plus the lead time, through live buckets, a few
// hundred at a time. An entry is delivered once for each death time that it
// gets, again if it is rewritten in its bucket with another size, and perhaps
// twice if compaction moves it, if it is put while its bucket is being read, or
// after the cursor was slower than ExpiringFeed::kMaxAgeUs. Entries that die,
// are killed or are removed before their turn are not delivered; shared events
// were read at their published_us.
//
// Used by one thread at a time; must not outlive its map, nor be destroyed from
// its own `wake`. Holds some hundred bytes, whatever the number of buckets, and
// kMaxWork places during a round. A round with nothing new costs O(shards).
class ExpiringCursor {
 public:
  // An entry that is put with less than the lead time left is found at most one
  // bucket width, or this, later.
  static constexpr int64_t kMaxSoonUs = kMicrosPerSecond;
  // Short locks that one Read takes at most: about a millisecond.
  static constexpr int kMaxReadSteps = 128;
  // Generations that are listed at a time, in all shards together, but for at
  // least kMinWork in each.
  static constexpr size_t kMaxWork = 1024;
  static constexpr size_t kMinWork = 4;

  using Chunk = EventChunk;

  ~ExpiringCursor();
  ExpiringCursor(const ExpiringCursor&) = delete;
  ExpiringCursor& operator=(const ExpiringCursor&) = delete;

  // Continues the round, or starts one if it is due. Takes at most
  // kMaxEventBatchEvents events and `max_bytes` of keys and values, itself at
  // most kMaxEventBatchBytes, or a single event or batch with more.
  Chunk Read(int64_t now_us, int64_t max_bytes);

  // Lets the next Read start a round, unless one is in progress or the last one
  // started less than `max_age_us` ago.
  void Refresh(int64_t now_us = kNeverUs, int64_t max_age_us = 0) {
    if (state_ != State::kIdle) return;
    if (max_age_us > 0 && watermark_us_ > now_us - max_age_us) return;
    next_round_us_ = INT64_MIN;
  }

  // When the next round is due: when the next bucket comes within the lead
  // time, or entries may have been put there.
  int64_t NextDueUs() const { return next_round_us_; }

 private:
  friend class ExpiringFeed;
  class Writer;

  // A generation of one shard.
  using Work = std::pair<int64_t, size_t>;
  enum class State : uint8_t {
    kIdle,
    // Waits for the feed's look; takes from it; lists the next generations;
    // reads them.
    kLook,
    kTake,
    kList,
    kRead,
  };

  ExpiringCursor(ExpiringFeed* feed, ExpiringFeed::Options options,
                 std::function<void()> wake)
      : feed_(feed), options_(std::move(options)), wake_(std::move(wake)) {}

  void BeginRound(int64_t now_us);
  void TakeStep(int64_t now_us, Writer* writer, Chunk* chunk);
  void ListStep(int64_t now_us);
  void ReadStep(int64_t now_us, Writer* writer);
  void EndPart();

  ExpiringFeed* const feed_;
  const ExpiringFeed::Options options_;
  const std::function<void()> wake_;

  // Guarded by the feed's lock: the next of its batches, and how far changes
  // are tracked for this cursor.
  uint64_t next_batch_ = 0;
  int64_t tracked_us_ = INT64_MIN;

  State state_ = State::kIdle;
  int64_t watermark_us_ = 0;
  int64_t next_round_us_ = INT64_MIN;
  // When the current round started, how far it goes, and the look that it waits
  // for.
  int64_t round_us_ = 0;
  int64_t round_until_us_ = 0;
  uint64_t look_ = 0;
  // All entries put before since_us_ into buckets up to front_us_ were
  // delivered.
  int64_t front_us_ = INT64_MIN;
  int64_t since_us_ = INT64_MIN;
  // Up to here buckets are walked again, for what was put since since_us_; that
  // holds for what comes then as since_us_.
  int64_t again_until_us_ = INT64_MIN;
  int64_t again_since_us_ = INT64_MIN;
  // The current part of the walk: after one death time, up to another.
  int64_t part_begin_us_ = INT64_MIN;
  int64_t part_end_us_ = INT64_MIN;
  size_t list_shard_ = 0;
  std::vector<Work> work_;
  size_t work_done_ = 0;
  LivePosition place_;
  MemoryCharge charge_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_EXPIRY_EXPIRING_CURSOR_H_

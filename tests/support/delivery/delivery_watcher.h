// A watcher of the delivery model: connects, reads, stalls, resumes, and is
// held against the reference at every step.

#ifndef TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WATCHER_H_
#define TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WATCHER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "server/engine/expiry/expiry_log.h"
#include "server/engine/map/time_cache_map.h"
#include "tests/support/delivery/delivery_reference.h"

namespace timecache::server {

// Since its start, over any number of resumes: what was delivered and what was
// counted as lost are together what died, no event comes twice, in the order of
// their numbers, and none after a watermark that said that all had come.
//
// Not thread-safe.
class DeliveryWatcher {
 public:
  // None is owned; all must outlive the watcher. `retained` is null where
  // nobody knows what the log retains: then it may lose what died while it was
  // away.
  DeliveryWatcher(TimeCacheMap* map, DeliveryReference* events,
                  RetainedReference* retained)
      : map_(map), events_(events), retained_(retained) {}

  // Begins anew. `events_` must know all that died by `now_us`.
  void Connect(ExpiryLog::Start start, int64_t now_us);
  // Goes on behind its last read, or a few before: then what it has forgotten
  // comes again.
  void Resume(int64_t now_us, size_t reads_before);
  void Disconnect() { cursor_ = nullptr; }
  void Read(int64_t max_bytes);
  // Reads all there is; then nothing that died may be missing.
  void ReadToTheEnd();

  // Resume points that must be refused.
  void CheckRefusedPoints(int64_t now_us) const;
  // Whoever has not read all has been told that there is more.
  void CheckWoken() const;
  // The map is deleted, and all was read: that is what comes next.
  void CheckClosed();

  bool connected() const { return cursor_ != nullptr; }
  // Whether it has read since it began.
  bool has_place() const { return !places_.empty(); }
  size_t places() const { return places_.size(); }
  // The next event's number.
  uint64_t position() const { return now_.position; }
  int64_t watermark_us() const { return now_.watermark_us; }
  uint64_t delivered() const { return now_.delivered; }
  uint64_t lost() const { return now_.lost; }

 private:
  static constexpr size_t kMaxPlaces = 6;

  // Where it stands, and what it has been told up to there.
  struct Place {
    uint64_t position = 0;
    int64_t watermark_us = INT64_MIN;
    uint64_t delivered = 0;
    uint64_t lost = 0;
    ExpiryLog::Point point;
  };

  void CheckLost(uint64_t lost) const;

  TimeCacheMap* const map_;
  DeliveryReference* const events_;
  RetainedReference* const retained_;
  std::unique_ptr<ExpiryLog::Cursor> cursor_;
  // Where it began; unknown before the first Read of one that began EARLIEST
  // where nobody knows what is retained.
  std::optional<uint64_t> began_;
  Place now_;
  // After its last reads, the newest last.
  std::deque<Place> places_;
  // The next number when it connected.
  uint64_t end_before_ = 0;
  bool woken_ = false;
  bool more_ = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_WATCHER_H_

// What died in a map, numbered as its log numbers it, and what of it the log
// retains: what each watcher and each consumer group is held against.

#ifndef TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_REFERENCE_H_
#define TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/engine/store/event_batch.h"
#include "tests/support/engine/reference_model.h"

namespace timecache::server {

inline constexpr uint64_t kFirstEvent = 1;

// Every event that there ever was. The model knows which events die together;
// their order among themselves is the engine's to choose, once: whoever is told
// of one first decides its number for all others.
//
// Not thread-safe.
class DeliveryReference {
 public:
  // What the model says has died since the last call.
  void Expect(std::vector<ReferenceModel::Death> deaths);

  // The number of the next event; the first has kFirstEvent.
  uint64_t end() const { return numbers_.size(); }
  // The number behind those that died at or before `time_us` for sure.
  uint64_t EndAt(int64_t time_us) const;

  // Fails the test unless the event with this number looks like this.
  void CheckEvent(uint64_t number, const ExpiredEvent& event,
                  const Death& death);

  // Of an event that CheckEvent has seen.
  const std::string& KeyOf(uint64_t number) const;

 private:
  static constexpr uint64_t kUnnumbered = UINT64_MAX;

  // Events that died at one instant: numbers from `first` to that of the next
  // bucket. The time is exact once one of them was told.
  struct Bucket {
    uint64_t first = 0;
    int64_t earliest_us = 0;
    int64_t latest_us = 0;
    Cause cause = Cause::kExpired;
  };

  struct Event {
    std::string key;
    size_t value_hash = 0;
    size_t value_bytes = 0;
    int64_t put_us = 0;
    int64_t deadline_us = 0;
    size_t bucket = 0;
    uint64_t number = kUnnumbered;
  };

  size_t BucketOf(uint64_t number) const;

  std::vector<Bucket> buckets_;
  // By version.
  std::unordered_map<uint64_t, Event> events_;
  // The version of the event with each number; 0 while nobody was told.
  std::vector<uint64_t> numbers_ = std::vector<uint64_t>(kFirstEvent);
};

// What a log retains, batch by batch, by the rules in ExpiryLog.
//
// Not thread-safe.
class RetainedReference {
 public:
  RetainedReference(int64_t retention_us, int64_t retention_bytes)
      : retention_us_(retention_us), retention_bytes_(retention_bytes) {}

  // The log appended `batch`, at its death().published_us.
  void Append(const EventBatch& batch);
  // The log trims: no cursor that is connected needs what is below `needed`.
  void Trim(int64_t now_us, uint64_t needed);
  // The log dropped that many events for their memory: whole batches, the
  // oldest, and the newest only if no cursor that is connected needs it.
  void Reclaim(uint64_t events, uint64_t needed);
  void SetRetention(int64_t retention_us, int64_t retention_bytes) {
    retention_us_ = retention_us;
    retention_bytes_ = retention_bytes;
  }

  // The number of the oldest event that is retained; end() if none is.
  uint64_t oldest() const;
  // The number of the next event that is appended.
  uint64_t end() const { return end_; }
  int64_t bytes() const { return bytes_; }

  // Of an event that was appended, retained or not.
  int64_t DeathOf(uint64_t number) const {
    return batches_[BatchOf(number)].death_us;
  }
  // The batch that an event came in; its memory.
  size_t BatchOf(uint64_t number) const;
  int64_t BytesOfBatch(size_t batch) const { return batches_[batch].bytes; }

 private:
  struct Batch {
    uint64_t first = 0;
    int64_t appended_us = 0;
    int64_t death_us = 0;
    int64_t bytes = 0;
  };

  void DropOldest() { bytes_ -= batches_[oldest_batch_++].bytes; }

  int64_t retention_us_;
  int64_t retention_bytes_;
  // All there ever were; those from oldest_batch_ on are retained.
  std::vector<Batch> batches_;
  size_t oldest_batch_ = 0;
  uint64_t end_ = kFirstEvent;
  int64_t bytes_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_REFERENCE_H_

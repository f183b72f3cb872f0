// Events that died together, or changes, as a log keeps them.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_EVENT_BATCH_H_
#define TIMECACHED_SERVER_ENGINE_STORE_EVENT_BATCH_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/memory_budget.h"
#include "server/engine/store/event_encoding.h"

namespace timecache::server {

// A batch holds at most this many events, and no more bytes of keys and values
// than this unless it is one event.
inline constexpr int kMaxEventBatchEvents = 8192;
inline constexpr size_t kMaxEventBatchBytes = size_t{1} << 20;

// How many bytes both begin with.
inline size_t CommonBytes(absl::string_view a, absl::string_view b) {
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// Events with one time and cause of death, encoded. A dead bucket
// makes one batch, or several where it is larger than a batch may be or takes
// several steps of the sweep. Filled by one thread, then immutable.
class EventBatch {
 public:
  // `map` is the name of the map.
  EventBatch(absl::string_view map, const Death& death)
      : death_(death), encoding_(map, death) {}
  // One of another process, whose encoded() these bytes are. Null if they are
  // not such events of the map, with this death. O(events), and one copy.
  static std::shared_ptr<const EventBatch> FromEncoded(
      absl::string_view map, const Death& death, absl::string_view encoded);

  // Makes room at once for that many events and bytes of keys and values, or
  // for a full batch if that is less.
  void Reserve(int64_t events, int64_t payload_bytes);

  // Whether `event` still fits. A batch without an event takes any.
  bool HasRoomFor(const ExpiredEvent& event) const;
  void Add(const ExpiredEvent& event);
  // Frees the unused room.
  void ShrinkToFit();
  // Of changes, before it is shared: none of them happened earlier.
  void SetDeathUs(int64_t death_us) { death_.death_us = death_us; }

  int size() const { return static_cast<int>(offsets_.size()); }
  // 0 <= i < size().
  ExpiredEvent event(int i) const {
    return encoding_.Read(data_.get() + offsets_[static_cast<size_t>(i)]);
  }
  absl::string_view key(int i) const {
    return encoding_.ReadKey(data_.get() + offsets_[static_cast<size_t>(i)]);
  }

  // All events, one after the other; or one.
  absl::string_view encoded() const { return {data_.get(), used_}; }
  absl::string_view encoded(int i) const;
  // See EventEncoding::WriteDeadLetter.
  std::string EncodeDeadLetter(int i, const DeadLetterNote& note) const {
    return encoding_.WriteDeadLetter(event(i), note);
  }
  // An empty batch of the same map and death.
  std::shared_ptr<EventBatch> NewLike() const {
    return std::shared_ptr<EventBatch>(new EventBatch(death_, encoding_));
  }
  // These events alone, in the order given.
  std::shared_ptr<const EventBatch> Select(absl::Span<const int> events) const;
  // Those from number `from` to before `end`.
  std::shared_ptr<const EventBatch> Part(int from, int end) const;

  const Death& death() const { return death_; }
  int64_t death_us() const { return death_.death_us; }
  Cause cause() const { return death_.cause; }
  // What all keys begin with. Only with an event.
  absl::string_view common_prefix() const { return key(0).substr(0, common_); }
  // Of keys and values.
  int64_t payload_bytes() const { return static_cast<int64_t>(payload_bytes_); }
  // Memory that the batch takes.
  int64_t bytes() const;

  // For the consumer groups of a map, which share batches. Whether this is the
  // first of those that retain the batch now, or was the last. Thread-safe.
  bool AddRetainer() const {
    return retainers_.fetch_add(1, std::memory_order_relaxed) == 0;
  }
  bool RemoveRetainer() const {
    return retainers_.fetch_sub(1, std::memory_order_relaxed) == 1;
  }

 private:
  struct Free {
    void operator()(char* data) const { std::free(data); }
  };

  EventBatch(const Death& death, EventEncoding encoding)
      : death_(death), encoding_(std::move(encoding)) {}

  void AddEncoded(size_t bytes);
  void SetCapacity(size_t bytes);
  void Charge() { charge_.Set(bytes()); }

  Death death_;
  const EventEncoding encoding_;
  // From malloc, which can shrink what it gave without a copy.
  std::unique_ptr<char, Free> data_;
  size_t used_ = 0;
  size_t capacity_ = 0;
  size_t payload_bytes_ = 0;
  std::vector<uint32_t> offsets_;
  // Bytes that all keys begin with.
  size_t common_ = 0;
  mutable std::atomic<int> retainers_{0};
  EventMemoryCharge charge_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_EVENT_BATCH_H_

// Events that died together, as the expiry log keeps them.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_EVENT_BATCH_H_
#define TIMECACHED_SERVER_ENGINE_STORE_EVENT_BATCH_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/base/memory_budget.h"
#include "server/engine/store/scan.h"

namespace timecache::server {

enum class Cause : uint8_t {
  kExpired,
  kEvicted,
  kRotated,
  // Not dead: about to die at the batch's death_us.
  kExpiring,
};

// One entry that died, in the batch where it stands.
using ExpiredEvent = EntryView;

// An entry killed by RotateNamespace may die this much ahead of the clock:
// after a watermark that was published at the same tick.
inline constexpr int64_t kKillTickUs = 1;

// How an attempt of a consumer group at an event ended.
enum class FailureReason : uint8_t { kUnknown, kNacked, kTimedOut };

// What the events of a batch share.
struct Death {
  // When the entries' bucket died, for every reader.
  int64_t death_us = 0;
  // When the batch was handed to the log; in a journaled map, when the tick was
  // taken that permits it. Of the dead, never before death_us.
  int64_t published_us = 0;
  Cause cause = Cause::kExpired;
};

// What a consumer group says of an event that it makes a dead letter.
struct DeadLetterNote {
  absl::string_view group;
  uint64_t event_id = 0;
  int attempts = 0;
  int returns = 0;
  // How the last attempt ended.
  FailureReason reason = FailureReason::kUnknown;
  int64_t time_us = 0;
};

// How a batch writes its events. Events are written once, from the bucket that
// they died in, in the form in which most readers take them as it is; the
// engine does not know that form. Stateless, thread-safe.
class EventFormat {
 public:
  virtual ~EventFormat() = default;

  // The fields that are the same for all events of a batch, for the calls
  // below.
  virtual std::string Frame(absl::string_view map,
                            const Death& death) const = 0;
  // The most bytes that Write writes beyond key and value.
  virtual size_t MaxOverhead(absl::string_view frame) const = 0;
  // Returns the end of what was written.
  virtual char* Write(absl::string_view frame, const ExpiredEvent& event,
                      char* to) const = 0;
  // Reads what Write wrote; views into it.
  virtual ExpiredEvent Read(absl::string_view frame,
                            const char* from) const = 0;
  // Reads the key alone, at a lower cost.
  virtual absl::string_view ReadKey(absl::string_view frame,
                                    const char* from) const {
    return Read(frame, from).key;
  }
  // One event by itself: the value of a dead letter.
  virtual std::string WriteDeadLetter(absl::string_view frame,
                                      const ExpiredEvent& event,
                                      const DeadLetterNote& note) const = 0;

  // The engine's own format, for code that reads events one by one.
  static const EventFormat* Plain();
};

// A batch holds at most this many events, and no more bytes of keys and values
// than this unless it is one event.
inline constexpr int kMaxEventBatchEvents = 8192;
inline constexpr size_t kMaxEventBatchBytes = size_t{1} << 20;

// How many bytes both begin with.
inline size_t CommonBytes(absl::string_view a, absl::string_view b) {
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// Events with one time and cause of death, written by a format. A dead bucket
// makes one batch, or several where it is larger than a batch may be or takes
// several steps of the sweep. Filled by one thread, then immutable.
class EventBatch {
 public:
  // `map` is the name of the map. `format` is not owned and must outlive the
  // batch.
  EventBatch(absl::string_view map, const Death& death,
             const EventFormat* format = EventFormat::Plain());

  // Makes room at once for that many events and bytes of keys and values, or
  // for a full batch if that is less.
  void Reserve(int64_t events, int64_t payload_bytes);

  // Whether `event` still fits. A batch without an event takes any.
  bool HasRoomFor(const ExpiredEvent& event) const;
  void Add(const ExpiredEvent& event);
  // Frees the unused room.
  void ShrinkToFit();

  int size() const { return static_cast<int>(offsets_.size()); }
  // 0 <= i < size().
  ExpiredEvent event(int i) const {
    return format_->Read(frame_,
                         data_.get() + offsets_[static_cast<size_t>(i)]);
  }
  absl::string_view key(int i) const {
    return format_->ReadKey(frame_,
                            data_.get() + offsets_[static_cast<size_t>(i)]);
  }

  // All events, one after the other, as the format writes them; or one.
  absl::string_view encoded() const { return {data_.get(), used_}; }
  absl::string_view encoded(int i) const;
  // See EventFormat::WriteDeadLetter.
  std::string EncodeDeadLetter(int i, const DeadLetterNote& note) const {
    return format_->WriteDeadLetter(frame_, event(i), note);
  }
  // These events alone, in the order given, with the same death and format.
  std::shared_ptr<const EventBatch> Select(absl::Span<const int> events) const;
  // Those from number `from` to before `end`.
  std::shared_ptr<const EventBatch> Part(int from, int end) const;

  const EventFormat* format() const { return format_; }

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

  struct SameEvents {};
  EventBatch(SameEvents, const EventBatch& other);

  void SetCapacity(size_t bytes);
  void Charge() { charge_.Set(bytes()); }

  const Death death_;
  const EventFormat* const format_;
  const std::string frame_;
  const size_t max_overhead_;
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

// An entry that died or changed, and how it is written for watchers.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_EVENT_ENCODING_H_
#define TIMECACHED_SERVER_ENGINE_STORE_EVENT_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "server/engine/store/scan.h"

namespace timecache::server {

enum class Cause : uint8_t {
  kExpired,
  kEvicted,
  kRotated,
  // Not dead: about to die at the batch's death_us.
  kExpiring,
  // Not a death: changes by operations, none of which happened before the
  // batch's death_us.
  kChanged,
};

// One entry that died or changed, in the batch where it stands.
using ExpiredEvent = EntryView;

// An entry killed by RotateNamespace may die this much ahead of the clock:
// after a watermark that was published at the same tick.
inline constexpr int64_t kKillTickUs = 1;

// How an attempt of a consumer group at an event ended.
enum class FailureReason : uint8_t {
  kUnknown,
  kNacked,
  kTimedOut,
  kTerminated
};

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
  // The member's. May be empty.
  absl::string_view reason_text = {};
};

// Writes the events of one namespace with one death as the field `events` of
// WatchExpiredResponse (watch.proto), tag and length included; parts stand where
// a value would. A protobuf message is a sequence of fields in any order, so the
// events of whole batches, one after the other, are a message: each is encoded
// once, from the bucket that it died in, and sent as it is. Changes are written
// as the field `changes` of WatchChangesResponse, which has the same number.
// Immutable.
class EventEncoding {
 public:
  // `map` is the namespace, of at most 63 bytes.
  EventEncoding(absl::string_view map, const Death& death);

  // The most bytes that Write writes beyond key, value and traceparent.
  size_t MaxOverhead() const;
  // The most that it writes, also of a traceparent, which few events have.
  size_t MaxBytes(const ExpiredEvent& event) const;
  // Returns the end of what was written.
  char* Write(const ExpiredEvent& event, char* to) const;
  // Reads what Write wrote; views into it.
  ExpiredEvent Read(const char* from) const;
  // The bytes of the first of these events, or 0: they do not begin with one that
  // Write wrote.
  size_t SizeOf(absl::string_view events) const;
  // The key alone, at a lower cost.
  absl::string_view ReadKey(const char* from) const;
  // A serialized ExpiredEvent: the value of a dead letter.
  std::string WriteDeadLetter(const ExpiredEvent& event,
                              const DeadLetterNote& note) const;

  size_t memory_bytes() const { return shared_.capacity(); }

 private:
  bool OfChanges() const { return shared_.size() == 1; }
  static char* WriteChange(const ExpiredEvent& change, char* to);
  static ExpiredEvent ReadChange(const char* at, const char* end);

  // What all events have: before the key the namespace, after the deadline
  // death, delivery and cause. Behind one byte, the length of the former. Of
  // changes that byte alone: they have nothing in common.
  std::string shared_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_EVENT_ENCODING_H_

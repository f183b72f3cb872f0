// Requests and results of readers of dead or expiring entries.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_EXPIRY_TYPES_H_
#define TIMECACHED_SERVER_ENGINE_STORE_EXPIRY_TYPES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/engine/store/event_batch.h"

namespace timecache::server {

// A position in an expiry log, valid for the log's lifetime: after all events
// with a lower number, and all deaths at or before `watermark_us`.
struct LogPoint {
  // Random: another log, also one of the same name, has another.
  uint64_t log_id = 0;
  uint64_t next_event = 0;
  int64_t watermark_us = 0;
};

// A copied log continues twice, with different events from the copy on. So the
// copy's points have an id of their own; points of the original log are valid
// up to where the two diverge.
struct LogFork {
  // 0: the log is not a copy, and has its original id.
  uint64_t id = 0;
  // What both have: points with this id, up to this event and watermark.
  uint64_t from_id = 0;
  uint64_t next_event = 0;
  int64_t watermark_us = 0;

  // Added to the event number that consumers see, so that a settlement for the
  // other log settles nothing: another range of 2^32, as a new log would begin
  // (below 2^53).
  uint64_t event_offset() const { return (id & 0xfffff) << 32; }
};

// Where a new reader of a log starts: with deaths from now on, or with the
// oldest retained event.
enum class LogStart { kNow, kEarliest };

// Events that are not there any more: all their keys began with `prefix`.
struct LostEvents {
  uint64_t events = 0;
  std::string prefix;

  // Whether a key that begins with `other` may be among them.
  bool MayHave(absl::string_view other) const {
    const size_t both = std::min(prefix.size(), other.size());
    return absl::string_view(prefix).substr(0, both) == other.substr(0, both);
  }
};

// What one Read of a log finds, in order.
struct LogChunk {
  std::vector<std::shared_ptr<const EventBatch>> batches;
  // Everything that died at or before this has been read by this cursor, or
  // is counted as lost. Never goes back.
  int64_t watermark_us = 0;
  // Events that were dropped before this cursor came to them, since its last
  // Read. They died before those in `batches`.
  uint64_t lost = 0;
  // These, as far as something is known of them: all or none.
  std::vector<LostEvents> lost_events;
  // Where the cursor stands now.
  LogPoint point;
  // Whether there is more to read now.
  bool more = false;
  // The namespace is gone: nothing comes after this.
  bool closed = false;
};

// What a reader of expiring entries reads: entries whose keys begin with
// `key_prefix`, once they have at most `lead_us` left.
struct ExpiringOptions {
  int64_t lead_us = 0;
  std::string key_prefix = {};
  bool keys_only = false;
  // The limit at which another cursor on the namespace is refused.
  int64_t max_cursors = INT64_MAX;
};

// What one Read of expiring entries finds.
struct ExpiringChunk {
  // Of entries that are alive, with the cause kExpiring. The first `shared`
  // of them are shared by all cursors, unfiltered; the others have what the
  // cursor's options let pass. A new cursor's are in order of death.
  std::vector<std::shared_ptr<const EventBatch>> batches;
  size_t shared = 0;
  // Every entry that was in the namespace at this moment, and was to die within
  // the lead time, has been delivered or has died since. Never goes back; 0
  // until all entries that existed at the start have been delivered.
  int64_t watermark_us = 0;
  // Whether there is more to read now.
  bool more = false;
  // The namespace is gone: nothing comes after this.
  bool closed = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_EXPIRY_TYPES_H_

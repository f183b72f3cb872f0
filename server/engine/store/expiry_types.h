// Requests and results of readers of dead or expiring entries, and of members of
// consumer groups.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_EXPIRY_TYPES_H_
#define TIMECACHED_SERVER_ENGINE_STORE_EXPIRY_TYPES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
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
};

// Where a new reader of a log starts: with deaths from now on, or with the
// oldest retained event.
enum class LogStart { kNow, kEarliest };

// A position in a log for a consumer group.
struct LogPosition {
  enum class Kind { kStart, kTime, kPoint };

  LogPosition() = default;
  LogPosition(LogStart from) : start(from) {}  // NOLINT: a start is one

  static LogPosition After(int64_t time_us) {
    LogPosition position;
    position.kind = Kind::kTime;
    position.time_us = time_us;
    return position;
  }
  static LogPosition At(const LogPoint& point) {
    LogPosition position;
    position.kind = Kind::kPoint;
    position.point = point;
    return position;
  }
  // One of each partition, in order: not empty.
  static LogPosition At(std::vector<LogPoint> points) {
    if (points.size() == 1) return At(points.front());
    LogPosition position;
    position.kind = Kind::kPoint;
    position.points = std::move(points);
    return position;
  }

  Kind kind = Kind::kStart;
  LogStart start = LogStart::kNow;
  // Of kTime: the first retained event that died after it.
  int64_t time_us = 0;
  // Of kPoint: in a namespace of one partition, or else in each of its
  // partitions, in order.
  LogPoint point = {};
  std::vector<LogPoint> points = {};
};

// Where a position lies: events from `asked` on are meant, and those from
// `first` on are retained. Of a point alone these may differ. `end` is the number
// of the log's next event, and may be lower: events before `first` that are to
// come died before the position.
struct LogPlace {
  uint64_t asked = 0;
  uint64_t first = 0;
  uint64_t end = 0;
};

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

// One event, delivered to one member, or to become a dead letter. Keeps the
// batch that the event lies in.
struct Delivery {
  std::shared_ptr<const EventBatch> batch;
  int index = 0;
  // Its number in the log.
  uint64_t event_id = 0;
  // 1 for the first. Those that ended with a member's stream do not count.
  int attempt = 0;
  // How often a member's stream has ended while it held the event.
  int returns = 0;
  // As ConsumerGroup::delivery_id.
  uint64_t group_id = 0;
  // Of a dead letter, whose `attempt` is the number of those that counted.
  // How the last of them ended.
  FailureReason reason = FailureReason::kUnknown;
  // Of the namespace: the one whose log has the event.
  uint8_t partition = 0;
  // What the member that NACKed or terminated it last gave as its reason; null if
  // it gave none.
  std::shared_ptr<const std::string> reason_text = {};

  ExpiredEvent event() const { return batch->event(index); }
};

// What one Read of an EventReader finds, in order.
struct EventChunk {
  // Of a log, or of expiring entries: then alive, with the cause kExpiring, and
  // a new reader's in order of death.
  std::vector<std::shared_ptr<const EventBatch>> batches;
  // The first of `batches` are shared by all readers, unfiltered; the others
  // have what the reader's options let pass.
  size_t shared = 0;
  // Of a group.
  std::vector<Delivery> deliveries;
  // Of a log: everything that died at or before this has been read by this
  // reader, or is counted as lost. Of a group: has been settled or lost; 0 if
  // nothing is known to be. Of expiring entries: every entry that was in the
  // namespace at this moment, and was to die within the lead time, has been
  // delivered or has died since; 0 until all entries that existed at the start
  // have been delivered. Never goes back.
  int64_t watermark_us = 0;
  // Of a group: everything that died at or before this has been delivered to a
  // member at least once, or settled or lost; and everything that died at or
  // before that has arrived in the group. 0 if nothing is known to be.
  int64_t delivered_us = 0;
  int64_t arrived_us = 0;
  // Of a group that has delivered all that it has, some of it since the last
  // Read: delivered_us is past a death.
  bool all_delivered = false;
  // See EventReader::refreshes_later.
  bool refreshed = false;
  // Of a member that has an InFlightLimit: it has no room, so that there may be
  // events that were not read.
  bool at_limit = false;
  // Events that were dropped before this reader came to them, since its last
  // Read: they died before those in `batches`. Of a group: lost events that have
  // not been reported to a member yet.
  uint64_t lost = 0;
  // These, as far as something is known of them: of each partition all or none.
  std::vector<LostEvents> lost_events;
  // Where the reader of a log stands now: in a namespace of one partition, or
  // else in each of its partitions, in order.
  LogPoint point;
  std::vector<LogPoint> points;
  // A crash may undo what was read, such as the end of an earlier attempt of a
  // delivery. Of a map whose changes a log keeps, it is not delivered before all
  // changes up to now are stored: otherwise a member could get the number of
  // its attempt once more.
  bool undoable = false;
  // What was read is being stored first: the reader is woken then, if that
  // succeeds.
  bool storing = false;
  // Whether there may be more to read now.
  bool more = false;
  // The namespace or the group is gone: nothing comes after this.
  bool closed = false;
};

// What a reader of expiring entries reads: entries whose keys begin with
// `key_prefix`, once they have at most `lead_us` left.
struct ExpiringOptions {
  int64_t lead_us = 0;
  std::string key_prefix = {};
  bool keys_only = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_EXPIRY_TYPES_H_

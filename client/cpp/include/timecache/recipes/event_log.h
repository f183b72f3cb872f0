// A log of recent events, written and read by many clients.
//
//   timecache::EventLog log(client, "audit", {.chunk = absl::Minutes(1),
//                                             .chunks = 61});
//   log.Append(absl::Now(), "alice logged in");
//   absl::StatusOr<timecache::EventLog::Page> last_hour =
//       log.Read(absl::Now() - absl::Hours(1), absl::Now());

#ifndef TIMECACHE_RECIPES_EVENT_LOG_H_
#define TIMECACHE_RECIPES_EVENT_LOG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"

namespace timecache {

struct EventLogOptions {
  // The period that the events of one entry cover, at least 1 ms.
  absl::Duration chunk = absl::Seconds(10);
  // How many of them are kept, 2 to 4,096.
  int chunks = 61;
};

// Events in chunks of time: the entry NAME/N of the client's namespace has
// those from N x chunk on, and lives for chunks x chunk. An old chunk expires
// as any entry; a watch on key_prefix() archives it (Decode).
//
// Guarantee: an event can be read for at least (chunks - 1) x chunk after its
// time, if it is appended at its time: the clocks of the writers and of the
// server must agree; their difference shortens this time. Each event comes
// once, also if Append was repeated. ReadNew gives each event that is appended
// at most one chunk after its time exactly once, in whatever order writers are;
// later ones only Read gives.
//
// An unanswered Append may have happened. The client repeats it where its
// connection was lost; after another error Append the same Event again: readers
// recognise it by its id.
//
// Cost: Append is one round trip, and sends the event and 20 B. Reading
// transfers whole chunks, as many as fit into a response (3 MiB) for each round
// trip; so ReadNew transfers at least two chunks. A chunk has room for the
// namespace's max_value_bytes; beyond that Append is FAILED_PRECONDITION
// (reason VALUE_TOO_LARGE): take shorter chunks, or several logs. The
// namespace's max_ttl must be at least chunks x chunk.
//
// Thread-safe. Cheap to copy.
class TIMECACHED_EXPORT EventLog {
 public:
  struct Event {
    absl::Time time;  // With a resolution of 1 us.
    std::string data;
    uint64_t id = 0;  // Identifies it: from NewId.
  };

  // A reader's position: plain numbers, which may be stored.
  struct Position {
    int64_t chunk = 0;             // The newest one that was read.
    uint64_t offset = 0;           // Bytes of it that were read.
    uint64_t previous_offset = 0;  // The same of the chunk before.
  };

  struct Page {
    // Ordered by chunk; within a chunk in Read by time, in ReadNew by arrival.
    std::vector<Event> events;
    // Requested events may have expired.
    bool may_have_missed = false;
  };

  EventLog(const Client& client, std::string_view name,
           EventLogOptions options = {});

  static uint64_t NewId();

  absl::Status Append(absl::Time time, std::string_view data) const;
  absl::Status Append(const Event& event) const;

  // The events of [from, to). may_have_missed: `from` is more than (chunks - 1)
  // x chunk before `to`.
  absl::StatusOr<Page> Read(absl::Time from, absl::Time to) const;

  // The position from which ReadNew starts with the events of this time's
  // chunk.
  Position PositionAt(absl::Time time) const;

  // The events since `position`, up to the chunk of `now`; moves the position
  // after them, except on an error. may_have_missed: the last call was more
  // than (chunks - 1) x chunk ago.
  absl::StatusOr<Page> ReadNew(Position* position, absl::Time now) const;

  // The events in a chunk's value. DATA_LOSS if it is not a chunk.
  static absl::StatusOr<std::vector<Event>> Decode(std::string_view value);

  const std::string& key_prefix() const { return key_prefix_; }

 private:
  int64_t ChunkOf(absl::Time time) const;
  std::string KeyOf(int64_t chunk) const;
  // The values of these chunks; empty for missing ones.
  absl::StatusOr<std::vector<std::string>> Get(int64_t first,
                                               int64_t last) const;

  Client client_;
  std::string key_prefix_;
  EventLogOptions options_;
};

}  // namespace timecache

#endif  // TIMECACHE_RECIPES_EVENT_LOG_H_

// How a watch reads one namespace through a Store.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_READERS_H_
#define TIMECACHED_SERVER_ENGINE_STORE_READERS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/engine/store/expiry_types.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// A place in the events of one namespace: in its expiry log, where unread events
// cost nothing; as a member of a consumer group, which must settle the events
// that it takes; or among the entries that are about to die. Store::OpenLogs and
// its likes make readers with a `wake`, which signals that there may be
// something to read: from any thread and maybe under a lock, so it must be quick,
// must not block, and must not call or destroy the reader.
//
// A `wake` is called at most once until a Read has returned a chunk without `more`:
// that alone arms it again. Whoever stops reading while there is more is not woken,
// and must come back without it. A new reader may never be woken before its first
// Read.
//
// Reads are synchronous and bounded: they read local memory. A store with
// remote events fetches them first and then calls `wake`. `now_us` is the time
// of the process's clock, which the caller has just read.
//
// Used by one thread at a time. May outlive its namespace, not its store. The
// destruction of a group's reader leaves the group.
class EventReader {
 public:
  virtual ~EventReader() = default;

  // Of a log: whole batches up to `max_bytes` as they are encoded and
  // kMaxEventBatchEvents, at least one if there is one; they are the log's own,
  // shared by all its readers. Of a group: at most `max_events`, about
  // `max_bytes` as they are encoded, and no more than its membership lets it
  // hold; at least one if there is one for this member. Of expiring entries: at
  // most kMaxEventBatchEvents events and `max_bytes` of keys and values, or a
  // single event or batch with more.
  EventChunk Read(int64_t now_us, int max_events, int64_t max_bytes) {
    return Read(now_us, max_events, max_bytes, /*at_least_one=*/true);
  }
  // Without `at_least_one` what a log or a group has and does not fit stays
  // there: for what is added to a message that has something.
  virtual EventChunk Read(int64_t now_us, int max_events, int64_t max_bytes,
                          bool at_least_one) = 0;

  // Brings the watermark that the next read returns up to `now_us`, or leaves
  // one that is less than `max_age_us` old, as far as that is possible.
  virtual void RefreshWatermark(int64_t now_us, int64_t max_age_us) = 0;
  // Whether it is not the next read that has it, but a later one, whose chunk says
  // `refreshed`: the reader is woken for it.
  virtual bool refreshes_later() const { return false; }

  // Why a chunk says `closed`: NOT_FOUND (NAMESPACE_NOT_FOUND, or
  // GROUP_NOT_FOUND where the group alone was deleted).
  virtual absl::Status WhyClosed() const = 0;

  // When there may be something to read without a `wake`; kNeverUs if never.
  virtual int64_t NextDueUs() const { return kNeverUs; }

  // Of a log: counts events handed to the client this long after their death,
  // or after the client could take them. For the statistics.
  virtual void CountDelivery(int64_t /*lateness_us*/, uint64_t /*events*/) {}

  // Of a fetch from a group: it reads no more, and its events are being sent.
  // Leave says what becomes of them.
  virtual void StopReading() {}

  // Of a group: its stream has ended so. Returns the events that it holds, but
  // for a fetch that was answered, and takes no more.
  virtual void Leave(int64_t /*now_us*/, StreamEnd /*end*/) {}
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_READERS_H_

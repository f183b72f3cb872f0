// The sources of a watch's messages: one for each namespace.

#ifndef TIMECACHED_SERVER_RPC_WATCH_WATCH_SOURCE_H_
#define TIMECACHED_SERVER_RPC_WATCH_WATCH_SOURCE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "server/base/clock.h"
#include "server/engine/store/event_batch.h"
#include "server/rpc/watch/watch_message.h"

namespace timecache::server {

// One namespace as one watch sees it: its log, a consumer group's share of it,
// or entries about to die. It reads an EventReader, whose `wake` says when to
// Read again.
//
// Used by one thread at a time. Not destroyed from its reader's `wake`.
class WatchSource {
 public:
  // Encoded events that one Read takes, unless the first batch is larger. That
  // is one of at most kMaxEventBatchBytes of keys and values and less than 200
  // B for each event around them: less than 3 MiB, and gRPC's clients accept at
  // least 4 MiB. Or it is a single larger value.
  static constexpr int64_t kMaxMessageBytes =
      static_cast<int64_t>(kMaxEventBatchBytes);

  struct Reading {
    // Whether there is more to Read now.
    bool more = false;
    // Not OK: the stream ends with this, after the message is sent if it has an
    // event or a loss.
    absl::Status end;
  };

  virtual ~WatchSource() = default;

  // Adds events and `lost` to `*message`, which may have some already, and sets
  // `watermark_us` and `resume_token`.
  virtual Reading Read(int64_t now_us, WatchMessage* message) = 0;

  // The results of the last Reads are being written; writing was possible since
  // `since_us`.
  virtual void OnWritten(int64_t /*now_us*/, int64_t /*since_us*/) {}

  // Brings the watermark up to `now_us`, or leaves one that is less than
  // `max_age_us` old, as far as that is possible: a heartbeat is due.
  virtual void RefreshWatermark(int64_t now_us, int64_t max_age_us) = 0;

  // The server stops: delivers no more events that can wait.
  virtual void OnDrain() {}

  // The stream ends, and reads no more: returns events that other members may
  // have. The source itself lives until the client has read its last message,
  // or is gone.
  virtual void OnEnd(int64_t /*now_us*/, StreamEnd /*end*/) {}

  // When there may be something to Read without a `wake`; kNeverUs if never.
  virtual int64_t NextDueUs(int64_t /*now_us*/) { return kNeverUs; }
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_WATCH_SOURCE_H_

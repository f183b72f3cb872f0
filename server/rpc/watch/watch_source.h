// One namespace as one watch sees it.

#ifndef TIMECACHED_SERVER_RPC_WATCH_WATCH_SOURCE_H_
#define TIMECACHED_SERVER_RPC_WATCH_WATCH_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/store/readers.h"
#include "server/rpc/watch/watch_message.h"
#include "server/rpc/watch/watch_request.h"

namespace timecache::server {

// Turns what a reader reads into messages: of its log, of a consumer group's
// share of it, or of entries about to die. Without a filter they refer to the
// log's own bytes, which all watchers share; a group's events are copied, each
// with its number and attempt.
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
    // Whether the watermark is to be sent now, also without events.
    bool news = false;
    // Not OK: the stream ends with this, after the message is sent if it has an
    // event or a loss.
    absl::Status end;
  };

  // Of the namespace `name`. `request` is not owned and must outlive the
  // source.
  WatchSource(std::string name, const WatchRequest* request,
              std::unique_ptr<EventReader> reader)
      : name_(std::move(name)), request_(request), reader_(std::move(reader)) {}

  const std::string& name() const { return name_; }

  // Adds events and `lost` to `*message`, which may have some already, and sets
  // `watermark_us` and `resume_token`.
  Reading Read(int64_t now_us, WatchMessage* message);

  // The results of the last Reads are being written; writing was possible since
  // `since_us`.
  void OnWritten(int64_t now_us, int64_t since_us);

  // A heartbeat is due: see EventReader.
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) {
    reader_->RefreshWatermark(now_us, max_age_us);
  }
  int64_t NextDueUs() const { return reader_->NextDueUs(); }

  // The server stops: a group delivers no more.
  void OnDrain() { draining_ = true; }

  // The stream ends, and reads no more: returns events that other members may
  // have. The source itself lives until the client has read its last message,
  // or is gone. A client leaves because the server stops, too.
  void OnEnd(int64_t now_us, StreamEnd end) {
    reader_->Leave(now_us, draining_ ? StreamEnd::kByServer : end);
  }

 private:
  void AddBatches(const EventChunk& chunk, WatchMessage* message);

  std::string name_;
  const WatchRequest* request_;
  std::unique_ptr<EventReader> reader_;
  bool draining_ = false;
  // Events that were read and are not being written yet, by death time.
  std::vector<std::pair<int64_t, uint64_t>> unwritten_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_WATCH_SOURCE_H_

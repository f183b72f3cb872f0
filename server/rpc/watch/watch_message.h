// One message of a watch stream, or the answer to a fetch, put together from
// shared bytes.

#ifndef TIMECACHED_SERVER_RPC_WATCH_WATCH_MESSAGE_H_
#define TIMECACHED_SERVER_RPC_WATCH_WATCH_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "server/edge/response/response_account.h"
#include "server/engine/store/group_types.h"
#include "server/rpc/call/message_limit.h"
#include "server/rpc/watch/event_codec.h"
#include "server/rpc/watch/event_filters.h"

namespace timecache::server {

// A watch's response as a list of slices: batches in the wire format as
// they lie in the log, kept alive until gRPC has sent them, and a little of its
// own. Not thread-safe. O(batches), but for small ones, which are copied.
class WatchMessage {
 public:
  // Smaller batches are copied: a slice of its own costs gRPC more.
  static constexpr size_t kMaxCopiedBytes = 1024;
  // Most bytes of the fields other than events, but for what a token has beyond
  // kMaxPlainTokenBytes.
  static constexpr size_t kMaxRestBytes = 512;

  // An event whose value makes the message larger than `max_bytes`, including
  // the other fields, is sent without that value, but with its size. Bytes
  // encoded for watches are counted in `account`, unless that is null.
  explicit WatchMessage(size_t max_bytes = kDefaultMaxMessageBytes,
                        ResponseAccount* account = nullptr)
      : max_event_bytes_(max_bytes - kMaxRestBytes), account_(account) {}

  // In place of the constructor's; before anything is added.
  void SetLimits(size_t max_bytes, ResponseAccount* account) {
    max_event_bytes_ = max_bytes - kMaxRestBytes;
    account_ = account;
  }

  // In the wire format; one without events adds nothing.
  void Add(const PassedEvents& passed);
  // One event of a consumer group; copied.
  void AddDelivery(const Delivery& delivery, bool keys_only,
                   int field = kStreamEvents);

  // Whether it has no event.
  bool empty() const { return slices_.empty() && own_.empty(); }

  int64_t watermark_us = 0;
  uint64_t lost = 0;
  // Empty: none. Before events are added.
  std::string resume_token;
  // Of a group.
  std::optional<int64_t> delivered_us;

  // The whole message, about the namespace `map`. Leaves this one empty.
  grpc::ByteBuffer Take(absl::string_view map);
  // The same as the answer to a fetch.
  grpc::ByteBuffer TakeFetched();

 private:
  bool Fits(size_t event_bytes) const;
  // `patient` as ResponseAccount's.
  void Flush(bool patient = true);

  size_t max_event_bytes_;
  ResponseAccount* account_;
  absl::InlinedVector<grpc::Slice, 4> slices_;
  // The bytes after the slices.
  std::string own_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_WATCH_MESSAGE_H_

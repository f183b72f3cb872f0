// One call of WatchExpired, ConsumeExpired, WatchExpiring or WatchChanges, read
// message by message with a time limit. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_EVENTS_WATCH_STREAM_H_
#define TIMECACHED_CLIENT_CPP_SRC_EVENTS_WATCH_STREAM_H_

#include <memory>
#include <variant>

#include "client/cpp/src/rpc/steady_time.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "timecache/v1/data.grpc.pb.h"
#include "timecache/watch_types.h"

namespace timecache {

// The request determines the call.
using WatchRequest =
    std::variant<v1::WatchExpiredRequest, v1::ConsumeExpiredRequest,
                 v1::WatchExpiringRequest, v1::WatchChangesRequest>;

// How long a stream may bring nothing, of a client with so many addresses. Of
// several, unless it is given, a node that hangs is left.
absl::Duration SilenceMax(const WatchOptions& options, size_t addresses);

// All by one thread, but for Cancel, which is for any. Holds one message; the
// next is asked for when that one has been taken. A completion queue of its
// own, polled by the caller, makes it possible to wait with a limit and without
// a thread.
class WatchStream {
 public:
  enum class Event { kMessage, kEnd, kTimeout };

  // Starts the call. `stub` must outlive it.
  WatchStream(v1::TimeCacheService::Stub& stub, const WatchRequest& request);
  // Cancels the call and waits for its end, which is local and quick.
  ~WatchStream();

  WatchStream(const WatchStream&) = delete;
  WatchStream& operator=(const WatchStream&) = delete;

  // Waits until there is a message or the end, but not after `until`. After
  // kEnd, not to be called again.
  Event Await(SteadyTime until);

  // After kMessage, once: the content of the message, without the watch's own
  // state.
  WatchBatch Take();
  // After kEnd.
  const grpc::Status& status() const { return status_; }
  // Since when the server has owed a message.
  SteadyTime waiting_since() const { return waiting_since_; }

  void Cancel() { context_.TryCancel(); }

 private:
  enum class Pending { kNothing, kStart, kRead, kFinish };

  // The generated reader, whatever the messages are that it reads.
  class Reader;
  template <typename Response>
  class ReaderOf;

  void Ask(Pending operation);

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<Reader> reader_;
  Pending pending_ = Pending::kNothing;
  SteadyTime waiting_since_;
  grpc::Status status_;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_EVENTS_WATCH_STREAM_H_

// One call of WatchExpired, ConsumeExpired, WatchExpiring or WatchChanges.

#ifndef TIMECACHED_SERVER_RPC_WATCH_WATCH_STREAM_H_
#define TIMECACHED_SERVER_RPC_WATCH_WATCH_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/method.h"
#include "server/base/lock_order.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/request.h"
#include "server/rpc/call/stream_reactor.h"
#include "server/rpc/watch/watch_hub.h"
#include "server/rpc/watch/watch_request.h"
#include "server/rpc/watch/watch_source.h"

namespace timecache::server {

// A source for each watched namespace, and one message in flight. A client that
// does not read costs its positions in the sources and that message: no events
// are gathered for it, and when it reads again the log reports its losses.
//
// Thread-safe. Lives until OnDone.
class WatchStream final
    : public CallStream<WatchStream,
                        grpc::ServerWriteReactor<grpc::ByteBuffer>>,
      public Watcher {
 public:
  // Reads whose events were all filtered out, each in a turn of its own, until
  // the watcher gets its watermark.
  static constexpr int kMaxEmptyReads = 16;
  // How old the watermark of a heartbeat may be. Streams on one namespace share
  // the cost of refreshing it.
  static constexpr int64_t kMaxWatermarkAgeUs = kMicrosPerSecond / 10;
  // How long a client that has lost its permission has to read the message in
  // flight.
  static constexpr int64_t kWithdrawalGraceUs = kMicrosPerSecond;

  // The stream for these bytes of a Request, which is `method`'s, or one that
  // ends with its error. Neither `hub` nor `store` is owned; both must outlive
  // the call.
  template <typename Request>
  static WatchStream* Start(const CallGate& gate, const Method& method,
                            grpc::CallbackServerContext* context, WatchHub* hub,
                            Store* store, const grpc::ByteBuffer& bytes) {
    return StartWith(
        [&bytes]() -> absl::StatusOr<WatchRequest> {
          Request request;
          absl::Status status = TakeRequest(bytes, &request);
          if (!status.ok()) return status;
          return ToWatchRequest(request);
        },
        gate, method, context, hub, store);
  }

  bool OnWake(Wake why) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Source {
    WatchSource events;
    // When a message is due, with or without events.
    int64_t heartbeat_us = 0;
    int empty_reads = 0;
  };
  enum class Composed : uint8_t {
    kNothing,
    kMessage,
    // No events yet, and there is more to read.
    kMore,
  };

  using ReadRequest = absl::FunctionRef<absl::StatusOr<WatchRequest>()>;

  static WatchStream* StartWith(ReadRequest read_request, const CallGate& gate,
                                const Method& method,
                                grpc::CallbackServerContext* context,
                                WatchHub* hub, Store* store);
  WatchStream(const CallGate& gate, const Method& method,
              grpc::CallbackServerContext* context, WatchHub* hub)
      : CallStream(gate, method, context), hub_(hub) {}

  void Leave() override ABSL_LOCKS_EXCLUDED(mu_, wake_mu_);
  void WakeUp(const std::shared_ptr<WatchStream>& self)
      ABSL_LOCKS_EXCLUDED(wake_mu_);
  absl::Status Authorize() override;
  absl::Status Prepare(ReadRequest read_request);
  void OpenReaders(Store* store);
  // The store has opened a reader for each namespace, or failed.
  Store::DoneWith<Store::Readers> WhenOpen();
  void EndWithoutAccess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DrainSources() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool IsLight() const;
  bool Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PumpOrQueue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WaitsForRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Composed Compose(Source* source, int64_t now_us)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndSources(StreamEnd end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  WatchHub* const hub_;
  // Constant while the stream is open.
  WatchRequest request_;
  WatchHub::Needs needs_;

  std::vector<Source> sources_ ABSL_GUARDED_BY(mu_);
  // The source that has the next turn.
  size_t turn_ ABSL_GUARDED_BY(mu_) = 0;
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // Since when it has not been writing.
  int64_t writable_us_ ABSL_GUARDED_BY(mu_) = 0;
  bool waiting_for_room_ ABSL_GUARDED_BY(mu_) = false;
  // Held while a wake is with the hub, which may end once the stream has left.
  absl::Mutex wake_mu_ ABSL_ACQUIRED_AFTER(lock_order::kWake)
      ABSL_ACQUIRED_BEFORE(lock_order::kHub);
  bool has_left_ ABSL_GUARDED_BY(wake_mu_) = false;
  // Set before the wake that follows a wait.
  std::atomic<bool> has_waited_{false};
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  // All sources are there, and messages may be written.
  bool open_ ABSL_GUARDED_BY(mu_) = false;
  // Why the stream ends after the message in flight.
  absl::Status withdrawn_ ABSL_GUARDED_BY(mu_);
  int64_t withdrawn_us_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_WATCH_STREAM_H_

// One TailCalls call.

#ifndef TIMECACHED_SERVER_RPC_WATCH_TAIL_STREAM_H_
#define TIMECACHED_SERVER_RPC_WATCH_TAIL_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/base/lock_order.h"
#include "server/base/rate_limit.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/call_tails.h"
#include "server/rpc/call/stream_reactor.h"
#include "server/rpc/watch/watch_hub.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// A sample of the operations on a namespace: those that its token bucket lets
// through, and that have room until the message in flight is written. It is one
// of the hub's watchers, and follows the namespace's log without looking at the
// events, so that it ends as a watch does.
//
// Thread-safe. Lives until OnDone.
class TailStream final
    : public CallStream<TailStream, grpc::ServerWriteReactor<grpc::ByteBuffer>>,
      public Watcher,
      public CallTail {
 public:
  static constexpr uint32_t kDefaultPerSecond = 20;
  static constexpr uint32_t kMaxPerSecond = 1'000;
  // Of the operations that wait for the message in flight.
  static constexpr int kMaxWaiting = 1'000;
  static constexpr size_t kMaxWaitingBytes = size_t{1} << 20;
  // How often what was left out is reported, at least.
  static constexpr int64_t kReportUs = kMicrosPerSecond;
  // How long a client that has lost its permission has to read the message in
  // flight.
  static constexpr int64_t kWithdrawalGraceUs = kMicrosPerSecond;

  // What it works with. Not owned; must outlive the call.
  struct Parts {
    Store* store;
    WatchHub* hub;
    CallTails* tails;
  };

  static TailStream* Start(const CallGate& gate,
                           grpc::CallbackServerContext* context,
                           const Parts& parts, const grpc::ByteBuffer& request);

  bool OnWake(Wake why) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mu_);

  absl::string_view name() const override { return request_.namespace_(); }
  void OnOperations(const CallDetails& call,
                    absl::Span<const Operation> operations,
                    absl::Span<const Result> results) override
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  TailStream(const CallGate& gate, grpc::CallbackServerContext* context,
             const Parts& parts)
      : CallStream(gate, methods::kTailCalls, context), parts_(parts) {}

  void Leave() override ABSL_LOCKS_EXCLUDED(mu_, wake_mu_);
  absl::Status Authorize() override;
  absl::Status Prepare(const grpc::ByteBuffer& request);
  void Follow();
  void WakeUp(const std::shared_ptr<TailStream>& self)
      ABSL_LOCKS_EXCLUDED(wake_mu_);
  void EndWithoutAccess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ReadLog(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Parts parts_;
  // Constant once the stream is open.
  v1::TailCallsRequest request_;
  const LogPoints no_points_;
  std::optional<RateLimit> limit_;

  // Says when the namespace is deleted.
  std::unique_ptr<EventReader> reader_ ABSL_GUARDED_BY(mu_);
  // The next message.
  v1::TailCallsResponse waiting_ ABSL_GUARDED_BY(mu_);
  size_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  grpc::ByteBuffer message_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  // When a message without operations is due; the first one is at once.
  int64_t report_us_ ABSL_GUARDED_BY(mu_) = 0;
  bool confirmed_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  // Why the stream ends after the message in flight.
  absl::Status withdrawn_ ABSL_GUARDED_BY(mu_);
  int64_t withdrawn_us_ ABSL_GUARDED_BY(mu_) = 0;

  // Held while a wake is with the hub, which may end once the stream has left.
  absl::Mutex wake_mu_ ABSL_ACQUIRED_AFTER(lock_order::kWake)
      ABSL_ACQUIRED_BEFORE(lock_order::kHub);
  bool has_left_ ABSL_GUARDED_BY(wake_mu_) = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_TAIL_STREAM_H_

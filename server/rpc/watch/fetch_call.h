// One call of FetchExpired.

#ifndef TIMECACHED_SERVER_RPC_WATCH_FETCH_CALL_H_
#define TIMECACHED_SERVER_RPC_WATCH_FETCH_CALL_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/base/lock_order.h"
#include "server/engine/store/store.h"
#include "server/rpc/call/stream_reactor.h"
#include "server/rpc/watch/watch_hub.h"
#include "server/rpc/watch/watch_message.h"
#include "server/rpc/watch/watch_request.h"

namespace timecache::server {

// A member of a group for one answer: the hub wakes it as it wakes streams, and
// ends its wait. Events that it has taken stay with its caller once gRPC has
// sent the answer, and are returned if the call ends before.
//
// Thread-safe. Lives until OnDone.
class FetchCall final : public CallStream<FetchCall, grpc::ServerUnaryReactor>,
                        public Watcher {
 public:
  // At the end of its wait it answers once all that died until then has arrived
  // in the group, or so much later.
  static constexpr int64_t kMaxOvertimeUs = kMicrosPerSecond;
  // How long it waits for the journal, from when it has taken events that a
  // crash could undo.
  static constexpr int64_t kMaxStoringUs = 5 * kMicrosPerSecond;
  // How often it looks again meanwhile.
  static constexpr int64_t kLookAgainUs = kMicrosPerSecond / 20;

  // The call of these bytes, which answers in `*answer`. Nothing is owned; all
  // must outlive the call.
  static FetchCall* Start(const CallGate& gate,
                          grpc::CallbackServerContext* context, WatchHub* hub,
                          Store* store, const grpc::ByteBuffer& bytes,
                          grpc::ByteBuffer* answer);

  bool OnWake(Wake why) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  FetchCall(const CallGate& gate, grpc::CallbackServerContext* context,
            WatchHub* hub, grpc::ByteBuffer* answer);

  void Leave() override ABSL_LOCKS_EXCLUDED(mu_, wake_mu_);
  void WakeUp(const std::shared_ptr<FetchCall>& self)
      ABSL_LOCKS_EXCLUDED(wake_mu_);
  absl::Status Authorize() override;
  absl::Status Prepare(const grpc::ByteBuffer& bytes);
  void Join(Store* store);
  Store::DoneWith<Store::Readers> WhenJoined();
  bool Pump(bool settled) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool WaitsForRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  EventChunk ReadOnce(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  EventChunk Read(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitStored(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AwaitMore(const EventChunk& chunk, int64_t now_us, bool settled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  WatchHub* const hub_;
  grpc::ByteBuffer* const answer_;
  // Constant while the call waits.
  FetchRequest request_;

  // Null before the group is joined.
  std::unique_ptr<EventReader> reader_ ABSL_GUARDED_BY(mu_);
  WatchMessage message_ ABSL_GUARDED_BY(mu_);
  int events_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t deadline_us_ ABSL_GUARDED_BY(mu_) = 0;
  // Since when it waits for the journal; 0: it does not.
  int64_t storing_us_ ABSL_GUARDED_BY(mu_) = 0;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool answered_ ABSL_GUARDED_BY(mu_) = false;
  bool waiting_for_room_ ABSL_GUARDED_BY(mu_) = false;
  // As WatchStream's.
  absl::Mutex wake_mu_ ABSL_ACQUIRED_AFTER(lock_order::kWake)
      ABSL_ACQUIRED_BEFORE(lock_order::kHub);
  bool has_left_ ABSL_GUARDED_BY(wake_mu_) = false;
  // Why there was no room; set before has_waited_.
  absl::Status room_ ABSL_GUARDED_BY(wake_mu_);
  std::atomic<bool> has_waited_{false};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_FETCH_CALL_H_

// The common base of the streams' reactors.

#ifndef TIMECACHED_SERVER_RPC_CALL_STREAM_REACTOR_H_
#define TIMECACHED_SERVER_RPC_CALL_STREAM_REACTOR_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/method.h"
#include "server/base/lock_order.h"
#include "server/edge/response/response_account.h"
#include "server/rpc/call/call.h"
#include "server/rpc/call/call_gate.h"

namespace timecache::server {

// A stream that keeps itself from Keep to OnDone, since gRPC owns no reactor,
// and finishes once. `Stream` is the class that derives from this, `Reactor`
// the one of gRPC's.
template <typename Stream, typename Reactor>
class StreamReactor : public Reactor {
 public:
  void OnDone() final ABSL_LOCKS_EXCLUDED(mu_) {
    Leave();
    // The thread that finished the call may still hold the lock.
    { absl::MutexLock lock(&mu_); }
    self_.reset();
  }

 protected:
  explicit StreamReactor(grpc::CallbackServerContext* context)
      : context_(context) {}

  // The handler's return value. Nothing ends the stream before that.
  static Stream* Keep(std::shared_ptr<Stream> stream) {
    Stream* const kept = stream.get();
    kept->self_ = std::move(stream);
    return kept;
  }
  // Null once OnDone has returned.
  const std::shared_ptr<Stream>& self() const { return self_; }

  // The call is over: takes the stream from those who wake it.
  virtual void Leave() ABSL_LOCKS_EXCLUDED(mu_) = 0;

  // Whether it has finished.
  bool ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return ended_; }
  // Once, with no write in flight. A read that is in flight ends with the call.
  void Finish(grpc::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ended_ = true;
    Reactor::Finish(std::move(status));
  }

  // Gone after OnDone.
  grpc::CallbackServerContext* const context_;
  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kStream)
      ABSL_ACQUIRED_BEFORE(lock_order::kMap);

 private:
  std::shared_ptr<Stream> self_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
};

// A stream whose caller is checked against the rules, also when they change,
// and whose node against the cluster's; and that counts on its connection as unary calls do.
template <typename Stream, typename Reactor>
class CallStream : public StreamReactor<Stream, Reactor> {
 protected:
  using StreamReactor<Stream, Reactor>::mu_;

  CallStream(const CallGate& gate, const Method& method,
             grpc::CallbackServerContext* context)
      : StreamReactor<Stream, Reactor>(context),
        account_(gate.AccountOf(context->peer())),
        call_(gate, method, context, account_.get()) {
    if (account_) account_->BeginCall();
  }
  ~CallStream() override {
    if (account_) account_->EndCall(answered_);
  }

  // Whether the current rules permit the stream to its caller.
  virtual absl::Status Authorize() = 0;

  // An error if the rules have changed and no longer permit it, or if the node
  // does not serve any more.
  absl::Status CheckAccess() {
    absl::Status serves = call_.CheckService();
    if (!serves.ok()) return serves;
    if (!call_.stale()) return absl::OkStatus();
    absl::Status status = call_.Renew();
    return status.ok() ? Authorize() : status;
  }

  // Finishes the call; nothing if it has finished.
  void EndCall(const absl::Status& status, Call::FieldPath field_path = nullptr)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (this->ended()) return;
    if (account_) {
      account_->AnswerCall();
      answered_ = true;
    }
    this->Finish(call_.End(status, field_path));
  }

  // That of the connection; may be null.
  const ResponseAccountRef account_;
  // Used by one thread at a time: under mu_, except by the operation in flight.
  Call call_;

 private:
  bool answered_ = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_STREAM_REACTOR_H_

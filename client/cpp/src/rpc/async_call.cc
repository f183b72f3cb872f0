#include "client/cpp/src/rpc/async_call.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "grpcpp/alarm.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// Lives until its call has ended. Takes one step at a time: an attempt, then
// perhaps a pause, each begun where the other has ended.
class AsyncCall : public std::enable_shared_from_this<AsyncCall> {
 public:
  AsyncCall(Connection& connection, const ClientOptions& client,
            const CallOptions& call, Repeat repeat, BeginAttempt begin,
            EndCall end)
      : connection_(connection),
        options_(call),
        plan_(client, options_, repeat),
        retries_(plan_),
        begin_(std::move(begin)),
        end_(std::move(end)) {}

  void Attempt() {
    if (IsCancelled()) return end_(retries_.Last(NotSent(CancelledByCaller())));
    context_.emplace();
    Prepare(options_, plan_.deadline(), *context_);
    was_connected_ = connection_.IsUp() || was_connected_;
    {
      absl::MutexLock lock(&mu_);
      cancel_.emplace(options_.cancellation, [this] { context_->TryCancel(); });
    }
    begin_(&*context_, [self = shared_from_this()](const grpc::Status& status) {
      self->AfterAttempt(FromGrpcStatus(status));
    });
  }

 private:
  bool IsCancelled() const { return options_.cancellation.stop_requested(); }

  void AfterAttempt(const absl::Status& status) {
    ForgetCancellation();
    if (!status.ok() && IsCancelled()) return end_(CancelledByCaller());
    // Only a server returns reasons.
    was_connected_ = was_connected_ || ReasonName(status).has_value();
    const std::optional<absl::Duration> pause =
        was_connected_ ? retries_.PauseAfter(status) : std::nullopt;
    if (!pause) return end_(retries_.Last(status));
    Pause(*pause);
  }

  void Pause(absl::Duration pause) {
    // Until both are set: the alarm may go off at once.
    absl::MutexLock lock(&mu_);
    // gRPC keeps an alarm's callback, which must not keep the alarm.
    alarm_.emplace().Set(ToGrpcDeadline(SteadyAfter(pause)),
                         [self = shared_from_this()](bool /*is_due*/) mutable {
                           const auto call = std::move(self);
                           call->ForgetCancellation();
                           call->Attempt();
                         });
    cancel_.emplace(options_.cancellation, [this] { alarm_->Cancel(); });
  }

  // Waits for the callback if it is running.
  void ForgetCancellation() {
    absl::MutexLock lock(&mu_);
    cancel_.reset();
  }

  Connection& connection_;
  const CallOptions options_;
  const CallPlan plan_;  // Refers to options_.
  Retries retries_;
  const BeginAttempt begin_;
  const EndCall end_;

  // Of the last attempt, and of the pause after it. Destroyed before end_.
  std::optional<grpc::ClientContext> context_;
  std::optional<grpc::Alarm> alarm_;
  // In any attempt.
  bool was_connected_ = false;

  // Also orders the steps, which gRPC's threads take.
  absl::Mutex mu_;
  std::optional<std::stop_callback<std::function<void()>>> cancel_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace

void AttemptAsync(Connection& connection, const ClientOptions& client,
                  const CallOptions& call, Repeat repeat, BeginAttempt begin,
                  EndCall end) {
  if (absl::Status status = CheckMetadata(call); !status.ok()) {
    return end(std::move(status));
  }
  std::make_shared<AsyncCall>(connection, client, call, repeat,
                              std::move(begin), std::move(end))
      ->Attempt();
}

}  // namespace timecache

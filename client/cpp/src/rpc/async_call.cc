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
  AsyncCall(Route route, const ClientOptions& client, const CallOptions& call,
            Repeat repeat, BeginAttempt begin, EndCall end,
            const std::optional<SharedAttempts>& shared)
      : options_(call),
        plan_(client, options_, repeat),
        retries_(plan_, route.home()),
        begin_(std::move(begin)),
        end_(std::move(end)),
        route_(std::move(route)) {
    if (shared) shared_.emplace(*shared);
  }

  void Attempt() {
    if (IsCancelled()) return end_(retries_.Last(NotSent(CancelledByCaller())));
    to_ = route_.Next();
    // Once a stream has it, all of it may be another thread's.
    if (shared_ && AttemptShared()) return;
    shared_.reset();
    AttemptAlone();
  }

 private:
  bool IsCancelled() const { return options_.cancellation.stop_requested(); }

  void AttemptAlone() {
    context_.emplace();
    Prepare(options_, plan_.deadline(), *context_);
    endpoint_ = &to_.endpoints->current();
    was_connected_ = endpoint_->connection.IsUp() || was_connected_;
    {
      absl::MutexLock lock(&mu_);
      cancel_.emplace(options_.cancellation, [this] { context_->TryCancel(); });
    }
    begin_(*endpoint_, &*context_,
           [self = shared_from_this()](const grpc::Status& status) {
             self->AfterAttempt(FromGrpcStatus(status));
           });
  }

  // False: no stream takes it.
  bool AttemptShared() {
    const auto stream = to_.shared_calls->Find(shared_->ns, /*is_async=*/true);
    if (stream == nullptr || SteadyNow() >= plan_.deadline()) return false;
    was_connected_ = stream->IsOpen() ||
                     to_.endpoints->current().connection.IsUp() ||
                     was_connected_;
    SharedCall& call = shared_->call;
    call.deadline = plan_.deadline();
    call.done = [self = shared_from_this()] { self->AfterShared(); };
    if (options_.cancellation.stop_possible()) {
      absl::MutexLock lock(&mu_);
      cancel_.emplace(options_.cancellation,
                      [stream, &call] { stream->Cancel(call); });
    }
    if (stream->Start(call)) return true;
    ForgetCancellation();
    call.done = nullptr;
    return false;
  }

  void AfterShared() {
    ForgetCancellation();
    if (shared_->call.end == SharedCall::End::kAgain) return Attempt();
    const std::optional<absl::Status> status =
        to_.shared_calls->Take(shared_->call, plan_);
    if (!status) {
      shared_.reset();
      return AttemptAlone();
    }
    shared_->answered = status->ok();
    Ended(*status);
  }

  void AfterAttempt(const absl::Status& status) {
    ForgetCancellation();
    if (!IsCancelled()) to_.endpoints->MoveOn(*endpoint_, status);
    Ended(status);
  }

  void Ended(const absl::Status& status) {
    // Not from here, where gRPC still has the context.
    if (route_.GoesOn(status, options_)) return Pause(absl::ZeroDuration());
    if (!status.ok() && IsCancelled()) {
      const bool was_sent = !absl::IsCancelled(status) || MaybeApplied(status);
      return end_(was_sent ? CancelledByCaller()
                           : retries_.Last(NotSent(CancelledByCaller())));
    }
    // Only a server returns reasons.
    was_connected_ = was_connected_ || ReasonName(status).has_value();
    const std::optional<absl::Duration> pause =
        retries_.PauseAfter(status, was_connected_);
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

  const CallOptions options_;
  const CallPlan plan_;  // Refers to options_.
  Retries retries_;
  const BeginAttempt begin_;
  const EndCall end_;
  std::optional<SharedAttempts> shared_;  // None: by RPCs of its own.

  Route route_;
  // Of the last attempt.
  Destination to_ = {};
  Endpoint* endpoint_ = nullptr;
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

void AttemptAsync(Route route, const ClientOptions& client,
                  const CallOptions& call, Repeat repeat, BeginAttempt begin,
                  EndCall end, std::optional<SharedAttempts> shared) {
  const absl::Status& error = route.home().error();
  if (!error.ok()) return end(NotSent(error));
  if (absl::Status status = CheckMetadata(call); !status.ok()) {
    return end(std::move(status));
  }
  std::make_shared<AsyncCall>(std::move(route), client, call, repeat,
                              std::move(begin), std::move(end), shared)
      ->Attempt();
}

}  // namespace timecache

#include "client/cpp/src/rpc/call.h"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "grpc/grpc.h"
#include "grpc/slice.h"
#include "timecache/status.h"

namespace timecache {
namespace {

grpc_slice View(const std::string& bytes) {
  return grpc_slice_from_static_buffer(bytes.data(), bytes.size());
}

bool IsLegal(const std::string& key, const std::string& value) {
  return grpc_header_key_is_legal(View(key)) != 0 &&
         !absl::StartsWith(key, "grpc-") &&
         (grpc_is_binary_header(View(key)) != 0 ||
          grpc_header_nonbin_value_is_legal(View(value)) != 0);
}

// Waits for the whole pause; false if the caller cancels before.
bool Sleep(absl::Duration pause, const std::stop_token& cancellation) {
  std::mutex mutex;
  std::condition_variable_any cancelled;
  std::unique_lock lock(mutex);
  return !cancelled.wait_until(lock, cancellation, SteadyAfter(pause),
                               [&] { return cancellation.stop_requested(); });
}

}  // namespace

absl::Status CancelledByCaller() {
  return absl::CancelledError("the call was cancelled by its caller");
}

absl::Status CheckMetadata(const CallOptions& call) {
  for (const auto& [key, value] : call.metadata) {
    if (IsLegal(key, value)) continue;
    return NotSent(absl::InvalidArgumentError(absl::StrCat(
        "metadata \"", key, "\" cannot be sent: see CallOptions::metadata")));
  }
  return absl::OkStatus();
}

void Prepare(const CallOptions& call, SteadyTime deadline,
             grpc::ClientContext& context) {
  for (const auto& [key, value] : call.metadata) {
    context.AddMetadata(key, value);
  }
  context.set_deadline(ToGrpcDeadline(deadline));
}

std::optional<absl::Duration> Retries::PauseAfter(const absl::Status& status,
                                                  bool connected) {
  if (IsNotOwner(status)) {
    unreached_ = 0;
    const absl::Duration pause = not_owner_.Next();
    if (SteadyAfter(pause) >= deadline_) return std::nullopt;
    return pause;
  }
  if (IsNotConnected(status) && ++unreached_ < addresses_) {
    return absl::ZeroDuration();
  }
  if (!connected) return std::nullopt;
  if (left_ <= 0 || !IsConnectionLost(status)) return std::nullopt;
  --left_;
  const absl::Duration pause = backoff_.Next();
  if (SteadyAfter(pause) >= deadline_) return std::nullopt;
  maybe_applied_ = maybe_applied_ || MaybeApplied(status);
  return pause;
}

absl::Status Retries::Last(absl::Status status) const {
  const bool must_say = maybe_applied_ && !MaybeApplied(status);
  return must_say ? MaybeSent(std::move(status)) : status;
}

Attempted AttemptOnce(Endpoints& endpoints, const CallPlan& plan,
                      UnaryAttempt attempt) {
  const CallOptions& call = plan.call();
  grpc::ClientContext context;
  Prepare(call, plan.deadline(), context);
  Endpoint& endpoint = endpoints.current();
  // Without one, Await has tried to connect, or has reasons not to.
  const bool connected = endpoint.connection.Await(plan.deadline());
  absl::Status status;
  {
    const std::stop_callback cancel(call.cancellation,
                                    [&context] { context.TryCancel(); });
    status = FromGrpcStatus(attempt(endpoint, context));
  }
  if (!status.ok() && !call.cancellation.stop_requested()) {
    endpoints.MoveOn(endpoint, status);
  }
  return {std::move(status), connected};
}

absl::Status AttemptEach(Endpoints& endpoints, const CallPlan& plan,
                         absl::FunctionRef<Attempted()> attempt) {
  if (!endpoints.error().ok()) return NotSent(endpoints.error());
  const CallOptions& call = plan.call();
  if (absl::Status status = CheckMetadata(call); !status.ok()) return status;
  Retries retries(plan, endpoints);
  for (;;) {
    if (call.cancellation.stop_requested()) {
      return retries.Last(NotSent(CancelledByCaller()));
    }
    auto [status, connected] = attempt();
    if (status.ok()) return status;
    if (call.cancellation.stop_requested()) {
      return absl::IsCancelled(status) && !MaybeApplied(status)
                 ? retries.Last(NotSent(CancelledByCaller()))
                 : CancelledByCaller();
    }
    const std::optional<absl::Duration> pause =
        retries.PauseAfter(status, connected);
    if (!pause) return retries.Last(std::move(status));
    if (!Sleep(*pause, call.cancellation)) return CancelledByCaller();
  }
}

absl::Status Attempt(Endpoints& endpoints, const CallPlan& plan,
                     UnaryAttempt attempt) {
  return AttemptEach(endpoints, plan,
                     [&] { return AttemptOnce(endpoints, plan, attempt); });
}

bool IsConnectionLost(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return true;
  if (ReasonName(status) || IsMessageTooLarge(status)) return false;
  return absl::IsInternal(status) || absl::IsUnknown(status) ||
         absl::IsCancelled(status) || absl::IsResourceExhausted(status);
}

}  // namespace timecache

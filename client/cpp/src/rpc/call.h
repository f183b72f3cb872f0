// One call: context, deadline, attempts and status. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_CALL_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_CALL_H_

#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/backoff.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "grpcpp/client_context.h"
#include "timecache/call_options.h"
#include "timecache/types.h"

namespace timecache {

// Whether applying a call twice has the same effect as once: see RetryPolicy.
enum class Repeat { kUnsafe, kSafe };

// The plan of a call. Refers to the options of a call in progress.
class CallPlan {
 public:
  CallPlan(const ClientOptions& client, const CallOptions& call, Repeat repeat)
      : deadline_(SteadyAfter(call.timeout.value_or(client.timeout))),
        call_(call),
        is_repeatable_(repeat == Repeat::kSafe || call.repeatable),
        retry_(client.retry) {
    if (!is_repeatable_) retry_.max_attempts = 1;
  }

  SteadyTime deadline() const { return deadline_; }
  const CallOptions& call() const { return call_; }
  bool is_repeatable() const { return is_repeatable_; }
  const RetryPolicy& retry() const { return retry_; }

 private:
  const SteadyTime deadline_;
  const CallOptions& call_;
  const bool is_repeatable_;
  RetryPolicy retry_;
};

// INVALID_ARGUMENT for metadata on which gRPC would abort the process.
absl::Status CheckMetadata(const CallOptions& call);

// Sets up every call: its metadata and its time limit.
void Prepare(const CallOptions& call, SteadyTime deadline,
             grpc::ClientContext& context);

// The status of a call that its caller cancelled.
absl::Status CancelledByCaller();

// Whether and when a call is retried: by its plan; after a node that is not the
// owner always, and after an address without a connection, while the client has
// others, at the next one.
class Retries {
 public:
  Retries(const CallPlan& plan, const Endpoints& endpoints)
      : deadline_(plan.deadline()),
        addresses_(endpoints.size()),
        left_(plan.retry().max_attempts - 1),
        backoff_(plan.retry().min_pause, plan.retry().max_pause) {}

  // How long to wait before the next attempt, after one that failed with
  // `status`. `connected`: it had a connection. Nothing: there is none.
  std::optional<absl::Duration> PauseAfter(const absl::Status& status,
                                           bool connected);
  // The call's status, of its last attempt: MaybeApplied if any before it was.
  absl::Status Last(absl::Status status) const;

 private:
  const SteadyTime deadline_;
  const size_t addresses_;
  size_t unreached_ = 0;  // Addresses, one after the other.
  Backoff not_owner_{kMinNotOwnerPause, kMaxNotOwnerPause};
  int left_;
  Backoff backoff_;
  bool maybe_applied_ = false;  // Of the attempts with a pause after them.
};

// How an attempt ended, and whether it had a connection.
struct Attempted {
  absl::Status status;
  bool connected = false;
};

// Makes the attempts of a call.
absl::Status AttemptEach(Endpoints& endpoints, const CallPlan& plan,
                         absl::FunctionRef<Attempted()> attempt);

// One attempt by an RPC of its own: on the current endpoint once there is a
// connection or connecting has failed.
using UnaryAttempt = absl::FunctionRef<grpc::Status(
    Endpoint& endpoint, grpc::ClientContext& context)>;
Attempted AttemptOnce(Endpoints& endpoints, const CallPlan& plan,
                      UnaryAttempt attempt);

// All attempts so.
absl::Status Attempt(Endpoints& endpoints, const CallPlan& plan,
                     UnaryAttempt attempt);

// Whether the server is stopping, or the connection or the stream to it broke,
// which gRPC reports by one of several codes and without a reason of the
// server's (RESOURCE_EXHAUSTED where a proxy or the server's gRPC resets the
// stream with ENHANCE_YOUR_CALM): the same again may succeed.
bool IsConnectionLost(const absl::Status& status);

// Calls a method of a generated stub, e.g. &v1::TimeCacheService::Stub::Put of
// &Endpoint::cache.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Call(Endpoints& endpoints, Stub Endpoint::*stub,
                              grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                           const Request&,
                                                           Response*),
                              const Request& request, const CallPlan& plan) {
  Response response;
  const absl::Status status = Attempt(
      endpoints, plan, [&](Endpoint& endpoint, grpc::ClientContext& context) {
        return ((endpoint.*stub).*method)(&context, request, &response);
      });
  if (!status.ok()) return status;
  return response;
}

// The same of a stub that is rarely wanted, and made for the call.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Call(Endpoints& endpoints,
                              grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                           const Request&,
                                                           Response*),
                              const Request& request, const CallPlan& plan) {
  Response response;
  const absl::Status status = Attempt(
      endpoints, plan, [&](Endpoint& endpoint, grpc::ClientContext& context) {
        Stub stub(endpoint.channel);
        return (stub.*method)(&context, request, &response);
      });
  if (!status.ok()) return status;
  return response;
}

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_CALL_H_

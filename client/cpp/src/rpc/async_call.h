// An asynchronous call. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_ASYNC_CALL_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_ASYNC_CALL_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/cpp/src/owners/route.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/endpoints.h"
#include "client/cpp/src/shared/call_stream.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "timecache/call_options.h"
#include "timecache/types.h"

namespace timecache {

// Starts an attempt, and calls `end` once when it has ended.
using BeginAttempt =
    std::function<void(Endpoint& endpoint, grpc::ClientContext* context,
                       std::function<void(grpc::Status)> end)>;

using EndCall = std::function<void(absl::Status status)>;

// A call that goes by streams as far as they go. What it refers to lives as long
// as the call's EndCall.
struct SharedAttempts {
  const std::string& ns;
  SharedCall& call;
  bool& answered;  // Set where the answer is the SharedCall's.
};

// Does the attempts of a call as Attempt (call.h) does, but does not wait for a
// connection: a call that starts without one is retried only if a server
// answered it. Calls `end` once, with the status of the last attempt, on one of
// gRPC's threads, or before it returns if no attempt can start. `end` is
// destroyed when gRPC has no reference to the call left.
//
// What the route refers to outlives the call, which copies the options.
void AttemptAsync(Route route, const ClientOptions& client,
                  const CallOptions& call, Repeat repeat, BeginAttempt begin,
                  EndCall end,
                  std::optional<SharedAttempts> shared = std::nullopt);

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_ASYNC_CALL_H_

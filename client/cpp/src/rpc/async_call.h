// One call that no thread waits for. Internal to the client.
#pragma once

#include <functional>

#include "absl/status/status.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/connection.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/status.h"
#include "timecache/call_options.h"
#include "timecache/types.h"

namespace timecache {

// Begins an attempt, and calls `end` once when it has ended.
using BeginAttempt = std::function<void(grpc::ClientContext* context,
                                        std::function<void(grpc::Status)> end)>;

using EndCall = std::function<void(absl::Status status)>;

// Does the attempts of a call as Attempt (call.h) does, but waits for no
// connection: a call that begins without one is tried again only if a server
// answered it. Calls `end` once, with the status of the last attempt, on a
// thread of gRPC's, or before it returns where no attempt can begin. `end` is
// destroyed when nothing of the call is left in gRPC.
//
// `connection` outlives the call, which copies the options.
void AttemptAsync(Connection& connection, const ClientOptions& client,
                  const CallOptions& call, Repeat repeat, BeginAttempt begin,
                  EndCall end);

}  // namespace timecache

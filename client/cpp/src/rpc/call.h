// One call: context, deadline and status. Internal to the client.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/connection.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "grpcpp/client_context.h"
#include "timecache/status.h"

namespace timecache::inline client {

// What comes first in every call: its time limit, and a connection.
inline void Begin(Connection& connection, absl::Duration timeout,
                  grpc::ClientContext& context) {
  const SteadyTime deadline = SteadyAfter(timeout);
  connection.Await(deadline);
  context.set_deadline(ToGrpcDeadline(deadline));
}

// Whether the server is stopping, or the connection to it broke, which gRPC
// reports by one of several codes and without a reason of the server's: the
// same again may succeed.
inline bool IsConnectionLost(const absl::Status& status) {
  if (absl::IsUnavailable(status)) return true;
  return (absl::IsInternal(status) || absl::IsUnknown(status) ||
          absl::IsCancelled(status)) &&
         !ReasonName(status);
}

// Calls a method of a generated stub, e.g. &v1::TimeCacheService::Stub::Put.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Call(Connection& connection, Stub& stub,
                              grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                           const Request&,
                                                           Response*),
                              const Request& request, absl::Duration timeout) {
  grpc::ClientContext context;
  Begin(connection, timeout, context);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  return response;
}

}  // namespace timecache::inline client

// From the errors of gRPC and of google/rpc to absl::Status. Internal to the
// client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_RPC_STATUS_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_RPC_STATUS_H_

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace timecache {

// The same status, details included. Details that cannot be read are left out.
// The reason for a failed connection is put into words if it is known (see
// connect_error.h).
absl::Status FromGrpcStatus(const grpc::Status& status);
// Whether a call ended without a connection, so that nothing was sent.
bool IsNotConnected(const absl::Status& status);
// The same error, of a request that has not left this machine.
absl::Status NotSent(absl::Status status);
// The same error of the last attempt, where an earlier one may have been
// applied.
absl::Status MaybeSent(absl::Status status);
// The same of an operation's own error in a batch.
absl::Status FromRpcStatus(const google::rpc::Status& status);

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_RPC_STATUS_H_

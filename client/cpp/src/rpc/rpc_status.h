// From the errors of gRPC and of google/rpc to absl::Status. Internal to the
// client.
#pragma once

#include "absl/status/status.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"

namespace timecache {

// The same status, details included. Details that cannot be read are left out.
// Why there is no connection is said in words as far as is known (see
// connect_error.h).
absl::Status FromGrpcStatus(const grpc::Status& status);
// The same of an operation's own error in a batch.
absl::Status FromRpcStatus(const google::rpc::Status& status);

}  // namespace timecache

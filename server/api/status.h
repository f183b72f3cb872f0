// The one table from the engine's errors to gRPC's.

#ifndef TIMECACHED_SERVER_API_STATUS_H_
#define TIMECACHED_SERVER_API_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace timecache::server {

// The same code and message, with a google.rpc.ErrorInfo (domain "timecached",
// the engine's reason or the code's name) and, for an error about a field, a
// BadRequest with its path; with a RetryInfo, if the engine knows when a retry
// can succeed. Costs nothing for OK.
//
// `field_path` is the request's path of a field that the engine names, if it is
// not at the top level under the same name.
grpc::Status ToGrpcStatus(
    const absl::Status& status,
    std::string (*field_path)(const std::string& field) = nullptr);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_STATUS_H_

// The one table from the engine's errors to gRPC's.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_STATUS_H_
#define TIMECACHED_SERVER_SERVICE_CALL_STATUS_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"

namespace timecache::server {

// The same code and message, with a google.rpc.ErrorInfo (domain "timecached",
// the engine's reason or the code's name) and, where a field is at fault, a
// BadRequest with its path; with a RetryInfo, if the engine knows when it will
// be gone. Costs nothing for OK.
//
// `field_path` says where the request has a field that the engine names, where
// that is not at its top under the same name.
grpc::Status ToGrpcStatus(
    const absl::Status& status,
    std::string (*field_path)(const std::string& field) = nullptr);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CALL_STATUS_H_

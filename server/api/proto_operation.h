// Converts single operations between messages and the engine's types.

#ifndef TIMECACHED_SERVER_API_PROTO_OPERATION_H_
#define TIMECACHED_SERVER_API_PROTO_OPERATION_H_

#include "absl/status/statusor.h"
#include "server/engine/store/operation.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {

// Operations view the request's key and value. INVALID_ARGUMENT for errors that
// the engine cannot see: malformed durations, unknown conditions.
absl::StatusOr<Operation> ToOperation(const v1::PutRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::GetRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::RemoveRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::ContainsRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::TouchRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::AppendRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::CombineRequest& request);
// The operation refers to `gathering`, which must outlive it.
absl::StatusOr<Operation> ToOperation(const v1::GatherRequest& request,
                                      Gathering* gathering);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_PROTO_OPERATION_H_

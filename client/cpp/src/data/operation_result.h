// The answers to operations. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_DATA_OPERATION_RESULT_H_
#define TIMECACHED_CLIENT_CPP_SRC_DATA_OPERATION_RESULT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cpp/src/rpc/call.h"
#include "timecache/batch.h"
#include "timecache/operation.h"
#include "timecache/v1/data.pb.h"

namespace timecache {

const std::string& KeyOf(const v1::Operation& operation);

// Reads the response of an operation, and moves the bytes out of it. INTERNAL
// as its status if it is not a response of such an operation.
OperationResult TakeResult(const v1::Operation& operation,
                           v1::OperationResult& answer);

// Whether applying the operation twice has the same effect as once: see
// RetryPolicy. Of a batch: whether all of its operations are so.
bool IsRepeatable(const v1::Operation& operation);
Repeat RepeatOf(const v1::ExecuteRequest& request);

// INVALID_ARGUMENT for a batch that is larger than a request may be.
absl::Status CheckLimits(const Batch& batch);

// The same for all responses of a batch, INTERNAL if there is not one for each.
absl::StatusOr<std::vector<OperationResult>> TakeResults(
    const v1::ExecuteRequest& request, v1::ExecuteResponse& response);

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_DATA_OPERATION_RESULT_H_

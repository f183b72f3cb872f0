// The answers to operations. Internal to the client.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "timecache/batch.h"
#include "timecache/operation.h"
#include "timecache/v1/data.pb.h"

namespace timecache {

// Reads the answer to an operation, and takes the bytes out of it. INTERNAL as
// its status where it is no answer to such an operation.
OperationResult TakeResult(const v1::Operation& operation,
                           v1::OperationResult& answer);

// INVALID_ARGUMENT for a batch that is larger than a request may be.
absl::Status CheckLimits(const Batch& batch);

// The same of all answers to a batch, INTERNAL where there is not one for each.
absl::StatusOr<std::vector<OperationResult>> TakeResults(
    const v1::ExecuteRequest& request, v1::ExecuteResponse& response);

}  // namespace timecache

// The answers to operations. Internal to the client.
#pragma once

#include "timecache/operation.h"
#include "timecache/v1/data.pb.h"

namespace timecache::inline client {

// Reads the answer to an operation, and takes the bytes out of it. INTERNAL as
// its status where it is no answer to such an operation.
OperationResult TakeResult(const v1::Operation& operation,
                           v1::OperationResult& answer);

}  // namespace timecache::inline client

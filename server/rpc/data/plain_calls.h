// Reports the plain calls of an independent request to the observers of calls.

#ifndef TIMECACHED_SERVER_RPC_DATA_PLAIN_CALLS_H_
#define TIMECACHED_SERVER_RPC_DATA_PLAIN_CALLS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/api/access.h"
#include "server/engine/store/operation.h"
#include "server/rpc/call/call.h"
#include "server/rpc/data/batch_request.h"

namespace timecache::server {

// Each operation as a call of its kind's own RPC that took `took_us`, those that
// are alike together: one that has succeeded and has no ids is like the others of
// its kind. `results` are those of the request's operations(), and `stream` is
// the call that the request came on. Thread-safe.
void ReportPlainCalls(const Call& stream, const BatchRequest& request,
                      absl::Span<const Result> results, int64_t took_us);

// That one of them was refused as its caller lacks these permissions. Thread-safe.
void ReportPlainDenial(const Call& stream, const BatchRequest& request,
                       size_t index, OpKind kind, const absl::Status& status,
                       Verbs lacks);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_PLAIN_CALLS_H_

// The results of an atomic batch that is not applied.

#ifndef TIMECACHED_SERVER_ENGINE_STORE_ATOMIC_H_
#define TIMECACHED_SERVER_ENGINE_STORE_ATOMIC_H_

#include "absl/types/span.h"
#include "server/engine/store/operation.h"

namespace timecache::server {

// An operation of the batch has failed: those that have not are ABORTED
// (NOT_APPLIED). Positions stay.
void AbortOthers(absl::Span<Result> results);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_ATOMIC_H_

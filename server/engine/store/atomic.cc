#include "server/engine/store/atomic.h"

#include "server/base/error.h"

namespace timecache::server {

void AbortOthers(absl::Span<Result> results) {
  const absl::Status aborted =
      ErrorWithReason(absl::StatusCode::kAborted, Reason::kNotApplied,
                      "another operation of the atomic batch failed, so none "
                      "was applied");
  for (Result& result : results) {
    const absl::Status failed = result.status;
    const uint64_t position = result.position;
    result.Clear();
    result.status = failed.ok() ? aborted : failed;
    result.position = position;
  }
}

}  // namespace timecache::server

#include "server/engine/store/group_types.h"

#include "server/base/range_check.h"

namespace timecache::server {

absl::Status Validate(const GroupOptions& o) {
  for (const absl::Status& status : {
           CheckDuration("ack_timeout", o.ack_timeout_us, kMinAckTimeoutUs,
                         kMaxAckTimeoutUs),
           CheckNumber("max_attempts", o.max_attempts, 1, kMaxAttempts),
           CheckNumber("max_backlog_bytes", o.max_backlog_bytes,
                       kMinBacklogBytes, kMaxBacklogBytes),
           CheckUnusedTtl("unused_ttl", o.unused_ttl_us),
       }) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace timecache::server

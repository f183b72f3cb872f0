// How one call is done.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace timecache {

// When a call that failed is tried again. Only one that is safe to repeat, and
// only where its connection was lost under way or the server is stopping: what
// a server answers about the request itself stands, and a call that finds no
// connection has waited for one. Always within the call's timeout.
//
// Safe are the calls that change nothing (Contains, Size, CheckHealth, those
// that get or list), and Get and Touch: done twice, they leave the same entry,
// with a time to live that begins at the later one. Not so Put, Remove, Execute
// and Settle: what failed may have been done, and another's change since would
// be undone, or the second attempt fail on the first one's success. Watcher,
// GroupWorker and Pipeline have rules of their own.
struct RetryPolicy {
  // Attempts in all. 1: none is repeated.
  int max_attempts = 3;
  // Pauses between them: doubled from the one to the other, each shortened at
  // random by up to half, so that many clients do not come back all at once.
  absl::Duration min_pause = absl::Milliseconds(50);
  absl::Duration max_pause = absl::Seconds(1);
};

// What a call differs in from others of its client.
struct CallOptions {
  // Longest duration of the call, with all its attempts. Unset:
  // ClientOptions::timeout; of a scan ScanOptions::timeout.
  std::optional<absl::Duration> timeout = {};
  // Ends the call, from any thread, with CANCELLED; what it did is unknown. A
  // call that waits for a connection notices after up to 250 ms.
  std::stop_token cancellation = {};
  // Sent with the call, e.g. {"x-request-id", "..."} or {"traceparent", "..."}.
  // Keys of [0-9a-z_.-], not beginning with "grpc-"; values of printable ASCII,
  // or of any bytes where the key ends with "-bin". Others end the call with
  // INVALID_ARGUMENT.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  // Repeat this call, too, though it is not safe in general: as a Put that
  // nobody else competes with.
  bool repeatable = false;
};

}  // namespace timecache

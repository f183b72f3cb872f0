// Options of a single call.

#ifndef TIMECACHE_CALL_OPTIONS_H_
#define TIMECACHE_CALL_OPTIONS_H_

#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace timecache {

// When a failed call is retried: only if it is safe to repeat, and only if its
// connection was lost during the call or the server is stopping. An error about
// the request itself is final, and a call without a connection has already
// waited for one. Always within the call's timeout.
//
// Safe to repeat are the calls that change nothing (Contains, Size,
// CheckHealth, those that get or list), and Get and Touch: applied twice, they
// leave the same entry, with a time to live that begins at the later one. Not
// safe are Put, Remove, Append, Combine, Gather and Settle: the failed attempt
// may have been applied, so a second one could apply the change twice, undo a
// later change of another client, or fail because the first succeeded. With an
// idempotency_id the first five are safe, too. Execute is safe if all of its
// operations are, and none is a Contains with a condition.
// A Pipeline whose stream breaks goes on if all operations that were sent and not
// answered are safe. Watcher and GroupWorker have rules of their own.
struct RetryPolicy {
  // Attempts in all. 1: no retries.
  int max_attempts = 3;
  // Pauses between them, doubling from min_pause to max_pause, each shortened
  // at random by up to half, so that many clients do not retry all at once.
  absl::Duration min_pause = absl::Milliseconds(50);
  absl::Duration max_pause = absl::Seconds(1);
};

// Options in which a call differs from the others of its client.
struct CallOptions {
  // Longest duration of the call, with all its attempts. Unset:
  // ClientOptions::timeout; of a scan ScanOptions::timeout.
  std::optional<absl::Duration> timeout = {};
  // Ends the call, from any thread, with CANCELLED; its effect is unknown. A
  // call that waits for a connection notices after up to 250 ms.
  std::stop_token cancellation = {};
  // Sent with the call, e.g. {"x-request-id", "..."} or {"traceparent", "..."}.
  // A call with any others does not go together with others. Keys of [0-9a-z_.-], not beginning with "grpc-"; values of printable ASCII,
  // or of any bytes where the key ends with "-bin". Others end the call with
  // INVALID_ARGUMENT.
  std::vector<std::pair<std::string, std::string>> metadata = {};
  // Retry this call, too, although it is not safe in general: for example a Put
  // of a key that no other client writes.
  bool repeatable = false;
  // False: an RPC of its own also where ClientOptions::batching is true.
  bool batching = true;
};

}  // namespace timecache

#endif  // TIMECACHE_CALL_OPTIONS_H_

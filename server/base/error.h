// The engine's errors: an absl::Status with its reason and field as payloads,
// so that the service can report to programs what the message says to people.

#ifndef TIMECACHED_SERVER_BASE_ERROR_H_
#define TIMECACHED_SERVER_BASE_ERROR_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/base/reason.h"

namespace timecache::server {

// INVALID_ARGUMENT about one field. `field` is the name that the user knows
// ("num_buckets"); `problem` completes the sentence that begins with it and
// names the limit ("must be at least 2, not 1").
absl::Status InvalidField(absl::string_view field, absl::string_view problem);

// Further details of an error for programs, by name.
using ErrorMetadata = std::map<std::string, std::string>;

// An error of `code` with a reason for programs.
absl::Status ErrorWithReason(absl::StatusCode code, Reason reason,
                             absl::string_view message,
                             const ErrorMetadata& metadata = {});

// FAILED_PRECONDITION.
absl::Status PreconditionFailed(Reason reason, absl::string_view message);

// The same error with one more detail.
absl::Status WithMetadata(absl::Status status, absl::string_view name,
                          absl::string_view value);

// The same error, which a retry after this time avoids.
absl::Status WithRetryAfter(absl::Status status, int64_t retry_after_us);

// The details of such an error; none for any other status.
std::optional<Reason> ReasonOf(const absl::Status& status);
// Its name, or "".
absl::string_view ReasonNameOf(const absl::Status& status);
std::optional<std::string> FieldOf(const absl::Status& status);
ErrorMetadata MetadataOf(const absl::Status& status);
std::optional<int64_t> RetryAfterUsOf(const absl::Status& status);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_ERROR_H_

// How errors reach the user of the client: as absl::Status with the code and
// message that the server gave, and its error details as payloads, each under
// its type URL ("type.googleapis.com/google.rpc.ErrorInfo").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "timecache/error_reason.h"
#include "timecache/export.h"

namespace timecache {

// Whether the server refused for this reason, e.g. ErrorReason::kKeyExists.
TIMECACHED_EXPORT bool HasReason(const absl::Status& status,
                                 ErrorReason reason);

// Why the server refused, in its own word: the reason of its
// google.rpc.ErrorInfo, e.g. "KEY_EXISTS", also one that only a later server
// has. None where the error is not the server's own (no connection, deadline
// passed, cancelled).
TIMECACHED_EXPORT std::optional<std::string> ReasonName(
    const absl::Status& status);

// Whether the client's own gRPC refused a message of the server's because it is
// larger than the channel takes (grpc::ChannelArguments'
// SetMaxReceiveMessageSize). Nothing is known about what the call did.
TIMECACHED_EXPORT bool IsMessageTooLarge(const absl::Status& status);

// Whether there is no connection because of TLS: the message then begins with
// what is wrong, as "the server's certificate is not for the name that this
// client asked for".
TIMECACHED_EXPORT bool IsTlsError(const absl::Status& status);

// What else its ErrorInfo says under this name, e.g. which "namespace" a watch
// cannot go on in.
TIMECACHED_EXPORT std::optional<std::string> ErrorMetadata(
    const absl::Status& status, const std::string& name);

// How long the server says to wait before the call is tried again: after
// MAX_OPERATION_RATE.
TIMECACHED_EXPORT std::optional<absl::Duration> RetryAfter(
    const absl::Status& status);

// A field of a request that the server refused, by its path in the message
// ("options.ttl"), and what is wrong with it. Of one operation in a batch it is
// the path in that operation's request ("key").
struct FieldViolation {
  std::string field;
  std::string description;
};

// The fields that an INVALID_ARGUMENT is about. Empty where it names none.
TIMECACHED_EXPORT std::vector<FieldViolation> FieldViolations(
    const absl::Status& status);

}  // namespace timecache

// Errors of the client's calls: absl::Status with the server's code and
// message, and its error details as payloads, each under its type URL
// ("type.googleapis.com/google.rpc.ErrorInfo").

#ifndef TIMECACHE_STATUS_H_
#define TIMECACHE_STATUS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "timecache/error_reason.h"
#include "timecache/export.h"

namespace timecache {

// Whether the server returned this reason, e.g. ErrorReason::kKeyExists.
TIMECACHED_EXPORT bool HasReason(const absl::Status& status,
                                 ErrorReason reason);

// The reason of the server's google.rpc.ErrorInfo, e.g. "KEY_EXISTS", also one
// that only a later server has. None if the error is not the server's own (no
// connection, deadline exceeded, cancelled).
TIMECACHED_EXPORT std::optional<std::string> ReasonName(
    const absl::Status& status);

// Whether a call that failed may have had its effect. False: there was no
// connection, or the server or the client itself refused it, so that the same
// call again applies it once. True: the connection broke, the time was up or the
// call was cancelled before the response came.
TIMECACHED_EXPORT bool MaybeApplied(const absl::Status& status);

// Whether the client's own gRPC refused a message of the server because it is
// larger than the channel accepts (grpc::ChannelArguments'
// SetMaxReceiveMessageSize). The call's effect is unknown.
TIMECACHED_EXPORT bool IsMessageTooLarge(const absl::Status& status);

// Whether the connection failed because of TLS: the message then begins with
// the cause, for example "the server's certificate is not for the name that
// this client asked for".
TIMECACHED_EXPORT bool IsTlsError(const absl::Status& status);

// The metadata of its ErrorInfo with this name, e.g. the "namespace" in which a
// watch cannot resume.
TIMECACHED_EXPORT std::optional<std::string> ErrorMetadata(
    const absl::Status& status, const std::string& name);

// How long the server asks to wait before a retry: after MAX_OPERATION_RATE.
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

#endif  // TIMECACHE_STATUS_H_

// How errors reach the user of the client: as absl::Status with the code and
// message that the server gave, and its error details as payloads, each under
// its type URL ("type.googleapis.com/google.rpc.ErrorInfo").
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpcpp/support/status.h"
#include "timecache/v1/errors.pb.h"

namespace timecache::inline client {

// The same status, details included. Details that cannot be read are left out.
// Why there is no connection is said in words as far as is known (see
// connect_error.h).
absl::Status FromGrpcStatus(const grpc::Status& status);
// The same of an operation's own error in a batch.
absl::Status FromRpcStatus(const google::rpc::Status& status);

// Whether the server refused for this reason, e.g. v1::KEY_EXISTS.
bool HasReason(const absl::Status& status, v1::ErrorReason reason);

// Why the server refused, in its own word: the reason of its
// google.rpc.ErrorInfo, e.g. "KEY_EXISTS", also one that only a later server
// has. None where the error is not the server's own (no connection, deadline
// passed, cancelled).
std::optional<std::string> ErrorReason(const absl::Status& status);

// Whether the client's own gRPC refused a message of the server's because it is
// larger than the channel takes (grpc::ChannelArguments'
// SetMaxReceiveMessageSize). Nothing is known about what the call did.
bool IsMessageTooLarge(const absl::Status& status);

// What else its ErrorInfo says under this name, e.g. which "namespace" a watch
// cannot go on in.
std::optional<std::string> ErrorMetadata(const absl::Status& status,
                                         const std::string& name);

// How long the server says to wait before the call is tried again: after
// MAX_OPERATION_RATE.
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// The fields that an INVALID_ARGUMENT is about. Empty where it names none.
std::vector<google::rpc::BadRequest::FieldViolation> FieldViolations(
    const absl::Status& status);

}  // namespace timecache::inline client

#include "timecache/status.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/rpc/connect_error.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "google/rpc/error_details.pb.h"
#include "timecache/v1/errors.pb.h"

namespace timecache {
namespace {

constexpr absl::string_view kErrorInfoUrl =
    "type.googleapis.com/google.rpc.ErrorInfo";
constexpr absl::string_view kBadRequestUrl =
    "type.googleapis.com/google.rpc.BadRequest";

constexpr absl::string_view kRetryInfoUrl =
    "type.googleapis.com/google.rpc.RetryInfo";

// What the client knows of an error itself: kNo, kMaybe.
constexpr absl::string_view kSentUrl = "timecached.dev/request-sent";
constexpr absl::string_view kNo = "no";
constexpr absl::string_view kMaybe = "maybe";

// Of a node that has lost the ownership while the call waited.
constexpr absl::string_view kOwnershipLost = "OWNERSHIP_LOST";

// In the words of gRPC 1.51.
constexpr absl::string_view kMessageTooLarge =
    "Received message larger than max";
// Of calls that have got to no connection.
constexpr absl::string_view kNotConnected[] = {
    "failed to connect to all addresses",
    "connections to all backends failing",
    "DNS resolution failed",
};

bool IsNotConnected(const grpc::Status& status) {
  if (status.error_code() != grpc::StatusCode::UNAVAILABLE ||
      !status.error_details().empty()) {
    return false;
  }
  return std::ranges::any_of(kNotConnected, [&](absl::string_view words) {
    return absl::StrContains(status.error_message(), words);
  });
}

template <typename Detail>
std::optional<Detail> FindDetail(const absl::Status& status,
                                 absl::string_view type_url) {
  const absl::optional<absl::Cord> payload = status.GetPayload(type_url);
  Detail detail;
  if (!payload || !detail.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return detail;
}

void AddDetails(const google::rpc::Status& details, absl::Status& status) {
  for (const google::protobuf::Any& any : details.details()) {
    status.SetPayload(any.type_url(), absl::Cord(any.value()));
  }
}

}  // namespace

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  std::string message = status.error_message();
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    const std::string why = ExplainConnectError(message);
    if (!why.empty()) message = absl::StrCat(why, " (", message, ")");
  }
  if (status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
      status.error_details().empty() &&
      absl::StrContains(message, kMessageTooLarge)) {
    message = absl::StrCat(
        "the response is larger than this client's channel accepts: raise its "
        "limit, which is grpc.max_receive_message_length (",
        message, ")");
  }
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      message);
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    AddDetails(details, result);
  }
  return IsNotConnected(status) ? NotSent(std::move(result)) : result;
}

bool IsNotConnected(const absl::Status& status) {
  return absl::IsUnavailable(status) && !ReasonName(status) &&
         !MaybeApplied(status);
}

absl::Status NotSent(absl::Status status) {
  if (!status.ok()) status.SetPayload(kSentUrl, absl::Cord(kNo));
  return status;
}

absl::Status MaybeSent(absl::Status status) {
  if (!status.ok()) status.SetPayload(kSentUrl, absl::Cord(kMaybe));
  return status;
}

absl::Status FromRpcStatus(const google::rpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.code()),
                      status.message());
  AddDetails(status, result);
  return result;
}

bool HasReason(const absl::Status& status, ErrorReason reason) {
  const auto number = static_cast<v1::ErrorReason>(reason);
  return number != v1::ERROR_REASON_UNSPECIFIED &&
         ReasonName(status) == v1::ErrorReason_Name(number);
}

std::optional<std::string> ReasonName(const absl::Status& status) {
  const auto info = FindDetail<google::rpc::ErrorInfo>(status, kErrorInfoUrl);
  if (!info) return std::nullopt;
  return info->reason();
}

bool MaybeApplied(const absl::Status& status) {
  if (status.ok()) return true;
  const absl::optional<absl::Cord> sent = status.GetPayload(kSentUrl);
  if (sent) return *sent != kNo;
  const std::optional<std::string> reason = ReasonName(status);
  // Otherwise the server refuses before it does anything.
  return !reason || *reason == kOwnershipLost ||
         HasReason(status, ErrorReason::kInternalError);
}

bool IsMessageTooLarge(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && !ReasonName(status) &&
         absl::StrContains(status.message(), kMessageTooLarge);
}

bool IsTlsError(const absl::Status& status) {
  return absl::IsUnavailable(status) &&
         !ExplainConnectError(status.message()).empty();
}

std::optional<std::string> ErrorMetadata(const absl::Status& status,
                                         const std::string& name) {
  const auto info = FindDetail<google::rpc::ErrorInfo>(status, kErrorInfoUrl);
  if (!info) return std::nullopt;
  const auto it = info->metadata().find(name);
  if (it == info->metadata().end()) return std::nullopt;
  return it->second;
}

std::optional<absl::Duration> RetryAfter(const absl::Status& status) {
  const auto info = FindDetail<google::rpc::RetryInfo>(status, kRetryInfoUrl);
  if (!info) return std::nullopt;
  return FromProto(info->retry_delay());
}

std::vector<FieldViolation> FieldViolations(const absl::Status& status) {
  const auto bad = FindDetail<google::rpc::BadRequest>(status, kBadRequestUrl);
  std::vector<FieldViolation> violations;
  if (!bad) return violations;
  for (const auto& violation : bad->field_violations()) {
    violations.push_back(
        {.field = violation.field(), .description = violation.description()});
  }
  return violations;
}

}  // namespace timecache

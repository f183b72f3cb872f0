#include "client/cpp/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/connect_error.h"
#include "client/cpp/convert.h"

namespace timecache::inline client {
namespace {

constexpr absl::string_view kErrorInfoUrl =
    "type.googleapis.com/google.rpc.ErrorInfo";
constexpr absl::string_view kBadRequestUrl =
    "type.googleapis.com/google.rpc.BadRequest";

constexpr absl::string_view kRetryInfoUrl =
    "type.googleapis.com/google.rpc.RetryInfo";

// In the words of gRPC 1.51.
constexpr absl::string_view kMessageTooLarge =
    "Received message larger than max";

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
        "the answer is larger than this client's channel takes: raise its "
        "limit, which is grpc.max_receive_message_length (",
        message, ")");
  }
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      message);
  google::rpc::Status details;
  if (details.ParseFromString(status.error_details())) {
    AddDetails(details, result);
  }
  return result;
}

absl::Status FromRpcStatus(const google::rpc::Status& status) {
  absl::Status result(static_cast<absl::StatusCode>(status.code()),
                      status.message());
  AddDetails(status, result);
  return result;
}

bool HasReason(const absl::Status& status, v1::ErrorReason reason) {
  return ErrorReason(status) == v1::ErrorReason_Name(reason);
}

std::optional<std::string> ErrorReason(const absl::Status& status) {
  const auto info = FindDetail<google::rpc::ErrorInfo>(status, kErrorInfoUrl);
  if (!info) return std::nullopt;
  return info->reason();
}

bool IsMessageTooLarge(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && !ErrorReason(status) &&
         absl::StrContains(status.message(), kMessageTooLarge);
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

std::vector<google::rpc::BadRequest::FieldViolation> FieldViolations(
    const absl::Status& status) {
  const auto bad = FindDetail<google::rpc::BadRequest>(status, kBadRequestUrl);
  if (!bad) return {};
  return {bad->field_violations().begin(), bad->field_violations().end()};
}

}  // namespace timecache::inline client

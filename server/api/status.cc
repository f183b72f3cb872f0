#include "server/api/status.h"

#include <optional>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"

namespace timecache::server {

grpc::Status ToGrpcStatus(const absl::Status& status,
                          std::string (*field_path)(const std::string&)) {
  if (status.ok()) return grpc::Status::OK;
  const std::string message(status.message());
  google::rpc::Status details;
  // absl and gRPC number the codes alike.
  details.set_code(static_cast<int>(status.code()));
  details.set_message(message);

  google::rpc::ErrorInfo info;
  info.set_domain("timecached");
  // Every client error has a reason.
  info.set_reason(std::string(
      ReasonName(ReasonOf(status).value_or(Reason::kInternalError))));
  for (auto& [name, value] : MetadataOf(status)) {
    (*info.mutable_metadata())[name] = value;
  }
  details.add_details()->PackFrom(info);

  if (const std::optional<std::string> field = FieldOf(status)) {
    google::rpc::BadRequest bad_request;
    auto* violation = bad_request.add_field_violations();
    violation->set_field(field_path != nullptr ? field_path(*field) : *field);
    violation->set_description(message);
    details.add_details()->PackFrom(bad_request);
  }
  if (const std::optional<int64_t> retry_after_us = RetryAfterUsOf(status)) {
    google::rpc::RetryInfo retry;
    SetDuration(*retry_after_us, retry.mutable_retry_delay());
    details.add_details()->PackFrom(retry);
  }
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), message,
                      details.SerializeAsString());
}

}  // namespace timecache::server

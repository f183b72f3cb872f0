#include "server/engine/error.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"

namespace timecache {
namespace {

constexpr absl::string_view kReasonUrl = "timecached/reason";
constexpr absl::string_view kFieldUrl = "timecached/field";

std::optional<std::string> Payload(const absl::Status& status,
                                   absl::string_view url) {
  const absl::optional<absl::Cord> payload = status.GetPayload(url);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

}  // namespace

absl::Status InvalidField(absl::string_view field, absl::string_view problem) {
  absl::Status status =
      absl::InvalidArgumentError(absl::StrCat(field, " ", problem));
  status.SetPayload(kReasonUrl, absl::Cord("INVALID_FIELD"));
  status.SetPayload(kFieldUrl, absl::Cord(field));
  return status;
}

absl::Status ErrorWithReason(absl::StatusCode code, absl::string_view reason,
                             absl::string_view message) {
  absl::Status status(code, message);
  status.SetPayload(kReasonUrl, absl::Cord(reason));
  return status;
}

std::optional<std::string> ReasonOf(const absl::Status& status) {
  return Payload(status, kReasonUrl);
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  return Payload(status, kFieldUrl);
}

}  // namespace timecache

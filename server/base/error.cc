#include "server/base/error.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace timecache::server {
namespace {

constexpr absl::string_view kReasonUrl = "timecached/reason";
constexpr absl::string_view kFieldUrl = "timecached/field";
constexpr absl::string_view kRetryUrl = "timecached/retry_after_us";
// Followed by the name.
constexpr absl::string_view kMetadataUrl = "timecached/metadata/";

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
  status.SetPayload(kReasonUrl, absl::Cord(ReasonName(Reason::kInvalidField)));
  status.SetPayload(kFieldUrl, absl::Cord(field));
  return status;
}

absl::Status ErrorWithReason(absl::StatusCode code, Reason reason,
                             absl::string_view message,
                             const ErrorMetadata& metadata) {
  absl::Status status(code, message);
  status.SetPayload(kReasonUrl, absl::Cord(ReasonName(reason)));
  for (const auto& [name, value] : metadata) {
    status = WithMetadata(std::move(status), name, value);
  }
  return status;
}

absl::Status PreconditionFailed(Reason reason, absl::string_view message) {
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, reason,
                         message);
}

absl::Status WithMetadata(absl::Status status, absl::string_view name,
                          absl::string_view value) {
  status.SetPayload(absl::StrCat(kMetadataUrl, name), absl::Cord(value));
  return status;
}

absl::Status WithRetryAfter(absl::Status status, int64_t retry_after_us) {
  status.SetPayload(kRetryUrl, absl::Cord(absl::StrCat(retry_after_us)));
  return status;
}

std::optional<Reason> ReasonOf(const absl::Status& status) {
  const std::optional<std::string> name = Payload(status, kReasonUrl);
  return name.has_value() ? ReasonOfName(*name) : std::nullopt;
}

absl::string_view ReasonNameOf(const absl::Status& status) {
  const std::optional<Reason> reason = ReasonOf(status);
  return reason.has_value() ? ReasonName(*reason) : "";
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  return Payload(status, kFieldUrl);
}

std::optional<int64_t> RetryAfterUsOf(const absl::Status& status) {
  const std::optional<std::string> text = Payload(status, kRetryUrl);
  int64_t retry_after_us;
  if (!text.has_value() || !absl::SimpleAtoi(*text, &retry_after_us)) {
    return std::nullopt;
  }
  return retry_after_us;
}

ErrorMetadata MetadataOf(const absl::Status& status) {
  ErrorMetadata metadata;
  status.ForEachPayload(
      [&metadata](absl::string_view url, const absl::Cord& value) {
        if (absl::ConsumePrefix(&url, kMetadataUrl)) {
          metadata.emplace(url, std::string(value));
        }
      });
  return metadata;
}

}  // namespace timecache::server

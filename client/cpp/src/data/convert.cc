#include "client/cpp/src/data/convert.h"

#include <algorithm>
#include <utility>

namespace timecache {
namespace {

// The range of google.protobuf.Duration and Timestamp: +-10,000 years, and the
// years 1 to 9999.
constexpr int64_t kMaxDurationSeconds = 315'576'000'000;
constexpr int64_t kMinTimestampSeconds = -62'135'596'800;
constexpr int64_t kMaxTimestampSeconds = 253'402'300'799;

// Numbered as in the proto.
ExpiryCause CauseFromProto(v1::ExpiryCause cause) {
  return v1::ExpiryCause_IsValid(cause) ? static_cast<ExpiryCause>(cause)
                                        : ExpiryCause::kUnknown;
}

template <typename Message>
std::optional<absl::Duration> OwnTtlOf(const Message& message) {
  if (!message.has_own_ttl()) return std::nullopt;
  return FromProto(message.own_ttl());
}

}  // namespace

google::protobuf::Duration ToProto(absl::Duration duration) {
  duration = std::clamp(duration, -absl::Seconds(kMaxDurationSeconds),
                        absl::Seconds(kMaxDurationSeconds));
  google::protobuf::Duration proto;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return proto;
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  time = std::clamp(time, absl::FromUnixSeconds(kMinTimestampSeconds),
                    absl::FromUnixSeconds(kMaxTimestampSeconds));
  const int64_t seconds = absl::ToUnixSeconds(time);  // Rounds down.
  google::protobuf::Timestamp proto;
  proto.set_seconds(seconds);
  proto.set_nanos(static_cast<int32_t>(
      absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return proto;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

absl::Time FromProto(const google::protobuf::Timestamp& time) {
  return absl::FromUnixSeconds(time.seconds()) +
         absl::Nanoseconds(time.nanos());
}

GatheredParts FromProto(v1::GatheredParts&& parts) {
  GatheredParts result;
  result.parts.reserve(parts.parts_size());
  for (v1::GatheredPart& part : *parts.mutable_parts()) {
    result.parts.push_back({.name = std::move(*part.mutable_name()),
                            .value = std::move(*part.mutable_value())});
  }
  result.expected_parts = parts.expected_parts();
  result.expected_names.assign(parts.expected_names().begin(),
                               parts.expected_names().end());
  return result;
}

Entry FromProto(v1::Entry&& entry) {
  return {.key = std::move(*entry.mutable_key()),
          .value = std::move(*entry.mutable_value()),
          .omitted_value_bytes = entry.omitted_value_bytes(),
          .version = entry.version(),
          .put_time = FromProto(entry.put_time()),
          .deadline = FromProto(entry.deadline()),
          .parts = TakeParts(entry),
          .create_time = FromProto(entry.create_time()),
          .own_ttl = OwnTtlOf(entry),
          .traceparent = std::move(*entry.mutable_traceparent())};
}

ExpiredEvent FromProto(v1::ExpiredEvent&& event) {
  return {.ns = std::move(*event.mutable_namespace_()),
          .key = std::move(*event.mutable_key()),
          .value = std::move(*event.mutable_value()),
          .omitted_value_bytes = event.omitted_value_bytes(),
          .version = event.version(),
          .put_time = FromProto(event.put_time()),
          .deadline = FromProto(event.deadline()),
          .death_time = FromProto(event.death_time()),
          .delivered_at = FromProto(event.delivered_at()),
          .cause = CauseFromProto(event.cause()),
          .event_id = event.event_id(),
          .attempt = event.attempt(),
          .parts = TakeParts(event),
          .create_time = FromProto(event.create_time()),
          .own_ttl = OwnTtlOf(event),
          .returns = event.returns(),
          .delivery_token = std::move(*event.mutable_delivery_token()),
          .last_reason = std::move(*event.mutable_last_reason()),
          .traceparent = std::move(*event.mutable_traceparent())};
}

ChangeEvent FromProto(v1::ChangeEvent&& event, const std::string& ns) {
  const bool known = event.kind() >= v1::CHANGE_KIND_PUT &&
                     v1::ChangeKind_IsValid(event.kind());
  ChangeEvent change = {.ns = ns,
                        .kind = known ? static_cast<ChangeKind>(event.kind())
                                      : ChangeKind::kUnknown,
                        .key = std::move(*event.mutable_key()),
                        .value = std::move(*event.mutable_value()),
                        .parts = TakeParts(event),
                        .omitted_value_bytes = event.omitted_value_bytes(),
                        .version = event.version(),
                        .time = FromProto(event.time())};
  if (event.has_deadline()) change.deadline = FromProto(event.deadline());
  return change;
}

}  // namespace timecache

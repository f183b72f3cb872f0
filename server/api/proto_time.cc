#include "server/api/proto_time.h"

#include "google/protobuf/util/time_util.h"
#include "server/base/error.h"
#include "server/base/wire_time.h"

namespace timecache::server {
namespace {

using google::protobuf::util::TimeUtil;

constexpr int32_t kNanosPerMicro = 1'000;
constexpr int32_t kNanosPerSecond = 1'000'000'000;

int64_t CeilMicros(int64_t seconds, int32_t nanos) {
  // Rounded towards zero below zero, which is upwards.
  const int64_t micros = nanos > 0
                             ? (nanos + kNanosPerMicro - 1) / kNanosPerMicro
                             : nanos / kNanosPerMicro;
  return seconds * kMicrosPerSecond + micros;
}

}  // namespace

absl::StatusOr<int64_t> ToMicros(const google::protobuf::Duration& duration,
                                 absl::string_view field) {
  return DurationToMicros(duration.seconds(), duration.nanos(), field);
}

absl::Duration ToDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

absl::StatusOr<int64_t> DurationToMicros(int64_t seconds, int32_t nanos,
                                         absl::string_view field) {
  if (seconds > TimeUtil::kDurationMaxSeconds ||
      seconds < TimeUtil::kDurationMinSeconds || nanos >= kNanosPerSecond ||
      nanos <= -kNanosPerSecond || (seconds > 0 && nanos < 0) ||
      (seconds < 0 && nanos > 0)) {
    return InvalidField(field, "is not a valid google.protobuf.Duration");
  }
  return CeilMicros(seconds, nanos);
}

absl::StatusOr<int64_t> ToMicros(const google::protobuf::Timestamp& time,
                                 absl::string_view field) {
  return TimeToMicros(time.seconds(), time.nanos(), field);
}

absl::StatusOr<int64_t> TimeToMicros(int64_t seconds, int32_t nanos,
                                     absl::string_view field) {
  if (seconds > TimeUtil::kTimestampMaxSeconds ||
      seconds < TimeUtil::kTimestampMinSeconds || nanos < 0 ||
      nanos >= kNanosPerSecond) {
    return InvalidField(field, "is not a valid google.protobuf.Timestamp");
  }
  return CeilMicros(seconds, nanos);
}

void SetTime(int64_t time_us, google::protobuf::Timestamp* time) {
  const TimeParts parts = PartsOfTime(time_us);
  time->set_seconds(parts.seconds);
  time->set_nanos(parts.nanos);
}

void SetDuration(int64_t duration_us, google::protobuf::Duration* duration) {
  duration->set_seconds(duration_us / kMicrosPerSecond);
  duration->set_nanos(static_cast<int32_t>(duration_us % kMicrosPerSecond) *
                      kNanosPerMicro);
}

absl::Status SetMicros(const google::protobuf::Duration& from,
                       absl::string_view field, int64_t* to) {
  absl::StatusOr<int64_t> micros = ToMicros(from, field);
  if (micros.ok()) *to = *micros;
  return micros.status();
}

}  // namespace timecache::server

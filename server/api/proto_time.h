// Converts times and durations between messages and the engine's types.

#ifndef TIMECACHED_SERVER_API_PROTO_TIME_H_
#define TIMECACHED_SERVER_API_PROTO_TIME_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/base/clock.h"

namespace timecache::server {

// Rounded up to a microsecond, so that nothing dies early. INVALID_ARGUMENT
// that names `field` for a message that is malformed or beyond the years 0001
// to 9999.
absl::StatusOr<int64_t> ToMicros(const google::protobuf::Duration& duration,
                                 absl::string_view field);
// For a duration that was checked; without rounding.
absl::Duration ToDuration(const google::protobuf::Duration& duration);
// The same as ToMicros of a duration's two numbers.
absl::StatusOr<int64_t> DurationToMicros(int64_t seconds, int32_t nanos,
                                         absl::string_view field);
absl::StatusOr<int64_t> ToMicros(const google::protobuf::Timestamp& time,
                                 absl::string_view field);
// The same of a time's two numbers.
absl::StatusOr<int64_t> TimeToMicros(int64_t seconds, int32_t nanos,
                                     absl::string_view field);
// As ToMicros; sets `*to` unless it is an error.
absl::Status SetMicros(const google::protobuf::Duration& from,
                       absl::string_view field, int64_t* to);

void SetTime(int64_t time_us, google::protobuf::Timestamp* time);
void SetDuration(int64_t duration_us, google::protobuf::Duration* duration);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_API_PROTO_TIME_H_

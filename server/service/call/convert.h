// Between the messages and the engine's types.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_CONVERT_H_
#define TIMECACHED_SERVER_SERVICE_CALL_CONVERT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/message.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/engine/clock.h"
#include "server/engine/map/operation.h"
#include "server/engine/map/options.h"
#include "server/engine/store_types.h"
#include "timecache/v1/data.pb.h"
#include "timecache/v1/groups.pb.h"
#include "timecache/v1/namespaces.pb.h"

namespace timecache::server {

// Rounded up to a microsecond, so that nothing dies early. INVALID_ARGUMENT
// that names `field` for a message that is malformed or beyond the years 0001
// to 9999.
absl::StatusOr<int64_t> ToMicros(const google::protobuf::Duration& duration,
                                 absl::string_view field);
// Of one that was checked; without rounding.
absl::Duration ToDuration(const google::protobuf::Duration& duration);
// The same as ToMicros of a duration's two numbers.
absl::StatusOr<int64_t> DurationToMicros(int64_t seconds, int32_t nanos,
                                         absl::string_view field);
absl::StatusOr<int64_t> ToMicros(const google::protobuf::Timestamp& time,
                                 absl::string_view field);

// A time as google.protobuf.Timestamp has it.
struct TimeParts {
  int64_t seconds;
  int32_t nanos;
};
inline TimeParts PartsOfTime(int64_t time_us) {
  int64_t seconds = time_us / kMicrosPerSecond;
  int64_t micros = time_us % kMicrosPerSecond;
  if (micros < 0) {
    --seconds;
    micros += kMicrosPerSecond;
  }
  return {seconds, static_cast<int32_t>(micros) * 1'000};
}

void SetTime(int64_t time_us, google::protobuf::Timestamp* time);
void SetDuration(int64_t duration_us, google::protobuf::Duration* duration);

// Operations view the request's key and value. INVALID_ARGUMENT for what the
// engine does not see: malformed durations, conditions that there are not.
absl::StatusOr<Operation> ToOperation(const v1::PutRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::GetRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::RemoveRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::ContainsRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::TouchRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::AppendRequest& request);
absl::StatusOr<Operation> ToOperation(const v1::CombineRequest& request);
// The operation leads to `gathering`, which must stay as long as it does.
absl::StatusOr<Operation> ToOperation(const v1::GatherRequest& request,
                                      Gathering* gathering);

// Sets field number `field` of `to` to GatheredParts as they lie in a value,
// without a look at them. They are there once the message has been written and
// read.
void SetParts(absl::string_view value, int field,
              google::protobuf::Message* to);

// Takes the entry's value.
void SetEntry(absl::string_view key, Entry* entry, v1::Entry* to);

// Sets what is set in `from`. INVALID_ARGUMENT for what cannot be represented;
// ranges are the engine's to check.
absl::Status ApplyOptions(const v1::NamespaceOptions& from, MapOptions* to);
// The same, of a namespace that there is: what is fixed at its creation cannot
// change any more.
absl::Status ChangeOptions(const v1::NamespaceOptions& from, MapOptions* to);

// The options of a new namespace: the defaults, and what is set in `from`.
absl::StatusOr<MapOptions> NewOptions(const v1::NamespaceOptions& from);

void SetOptions(const MapOptions& options, v1::NamespaceOptions* to);

// With the statistics, if it has them.
void SetNamespace(const NamespaceInfo& from, v1::Namespace* to);
void SetStatistics(const MapStatistics& from,
                   v1::NamespaceStatistics* statistics);

// The same of a consumer group.
absl::Status ApplyOptions(const v1::GroupOptions& from, GroupOptions* to);
void SetOptions(const GroupOptions& options, v1::GroupOptions* to);
void SetStatistics(const GroupStatistics& from, v1::GroupStatistics* to);
void SetGroup(const GroupInfo& from, v1::Group* to);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CALL_CONVERT_H_

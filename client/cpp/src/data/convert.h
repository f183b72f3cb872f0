// Converts between messages and the client's structs. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_DATA_CONVERT_H_
#define TIMECACHED_CLIENT_CPP_SRC_DATA_CONVERT_H_

#include <optional>
#include <utility>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "timecache/types.h"
#include "timecache/v1/data.pb.h"
#include "timecache/v1/watch.pb.h"
#include "timecache/watch_types.h"

namespace timecache {

// Exact to the nanosecond; a value that the message cannot hold becomes its
// largest or smallest value, which the server then refuses as out of range.
google::protobuf::Duration ToProto(absl::Duration duration);
google::protobuf::Timestamp ToProto(absl::Time time);

absl::Duration FromProto(const google::protobuf::Duration& duration);
absl::Time FromProto(const google::protobuf::Timestamp& time);

// These move the bytes out of the message, instead of copying them.
GatheredParts FromProto(v1::GatheredParts&& parts);
// The parts of a message that may have them.
template <typename Message>
std::optional<GatheredParts> TakeParts(Message& message) {
  if (!message.has_parts()) return std::nullopt;
  return FromProto(std::move(*message.mutable_parts()));
}
Entry FromProto(v1::Entry&& entry);
ExpiredEvent FromProto(v1::ExpiredEvent&& event);
ChangeEvent FromProto(v1::ChangeEvent&& event, const std::string& ns);

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_DATA_CONVERT_H_

// Between the wire's messages and the client's structs. Internal to the client.
#pragma once

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

// Exact to the nanosecond; what the message cannot hold becomes its largest or
// smallest value, which the server then refuses by its own range.
google::protobuf::Duration ToProto(absl::Duration duration);
google::protobuf::Timestamp ToProto(absl::Time time);

absl::Duration FromProto(const google::protobuf::Duration& duration);
absl::Time FromProto(const google::protobuf::Timestamp& time);

// These take the bytes out of the message, instead of copying them.
GatheredParts FromProto(v1::GatheredParts&& parts);
// The parts of a message that may have them.
template <typename Message>
std::optional<GatheredParts> TakeParts(Message& message) {
  if (!message.has_parts()) return std::nullopt;
  return FromProto(std::move(*message.mutable_parts()));
}
Entry FromProto(v1::Entry&& entry);
ExpiredEvent FromProto(v1::ExpiredEvent&& event);

}  // namespace timecache

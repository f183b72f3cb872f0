#ifndef TIMECACHED_SERVER_CONFIG_DURATION_TEXT_H_
#define TIMECACHED_SERVER_CONFIG_DURATION_TEXT_H_

#include <google/protobuf/duration.pb.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace timecache {

// Reads a duration as people write it: a number and a unit (ns, us, ms, s, m,
// h, d), or several, as in 1h30m and 1d12h. Only whole days. A bare 0 needs no
// unit. Negative ones, and those over 10,000 years, are INVALID_ARGUMENT, like
// all else. Thread-safe.
absl::StatusOr<google::protobuf::Duration> ParseDurationText(
    absl::string_view text);

// Writes it so that ParseDurationText reads it back: as a whole number of the
// largest unit that leaves no rest, 30s, 1500ms, 7d. Not for negative ones.
// Thread-safe.
std::string FormatDurationText(const google::protobuf::Duration& duration);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_CONFIG_DURATION_TEXT_H_

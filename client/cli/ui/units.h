// Counts and times as people write them; durations and sizes are as the
// server's.

#ifndef TIMECACHED_CLIENT_CLI_UI_UNITS_H_
#define TIMECACHED_CLIENT_CLI_UI_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/base/units.h"

namespace timecache::cli {

// A whole number, not negative.
absl::StatusOr<uint64_t> ParseCount(absl::string_view text);

// RFC 3339 ("2025-01-31T12:00:00Z"), or seconds since 1970 ("1800", "0.5").
absl::StatusOr<absl::Time> ParseTime(absl::string_view text);

// RFC 3339 in UTC, to the millisecond; exact (to the microsecond) in
// ExactTimeText.
std::string TimeText(absl::Time time);
std::string ExactTimeText(absl::Time time);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_UNITS_H_

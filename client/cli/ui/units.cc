#include "client/cli/ui/units.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace timecache::cli {

absl::StatusOr<uint64_t> ParseCount(absl::string_view text) {
  uint64_t count;
  if (!absl::SimpleAtoi(text, &count)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a whole number"));
  }
  return count;
}

absl::StatusOr<absl::Time> ParseTime(absl::string_view text) {
  double seconds;
  if (text.find_first_not_of("0123456789.") == text.npos &&
      absl::SimpleAtod(text, &seconds)) {
    return absl::UnixEpoch() + absl::Seconds(seconds);
  }
  absl::Time time;
  std::string error;
  if (!absl::ParseTime(absl::RFC3339_full, text, &time, &error)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text,
        "\" is not a time: write 2025-01-31T12:00:00Z, or seconds since 1970"));
  }
  return time;
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", time, absl::UTCTimeZone());
}

std::string ExactTimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E*SZ", time, absl::UTCTimeZone());
}

}  // namespace timecache::cli

// Durations, sizes and times as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace timecache::cli {

// "500ms", "30s", "1.5h", "7d", "1h30m"; units ns, us, ms, s, m, h, d. Not
// negative. At most 10,000 years.
absl::StatusOr<absl::Duration> ParseDuration(std::string_view text);

// The shortest form that ParseDuration takes: "30s", "1h30m", "7d".
std::string DurationText(absl::Duration duration);

// A whole number of bytes, or one with a unit: "64MiB", "1.5GiB", "10kB"; units
// B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (of 1024).
absl::StatusOr<uint64_t> ParseSize(std::string_view text);

// A whole number, not negative.
absl::StatusOr<uint64_t> ParseCount(std::string_view text);

// "64 MiB", "1.5 KiB", "17 B".
std::string SizeText(uint64_t bytes);

// RFC 3339 ("2025-01-31T12:00:00Z"), or seconds since 1970 ("1800", "0.5").
absl::StatusOr<absl::Time> ParseTime(std::string_view text);

// RFC 3339 in UTC, to the millisecond; exact (to the microsecond) in
// ExactTimeText.
std::string TimeText(absl::Time time);
std::string ExactTimeText(absl::Time time);

}  // namespace timecache::cli

// Durations and sizes as people write them: in the configuration, in flags, and
// in what is shown. Thread-safe.

#ifndef TIMECACHED_SERVER_BASE_UNITS_H_
#define TIMECACHED_SERVER_BASE_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace timecache {

// Reads a number and a unit (ns, us, ms, s, m, h, d), or several of them:
// "500ms", "1.5h", "7d", "1h30m". Zero needs no unit. INVALID_ARGUMENT, which
// repeats the text, for all else, for negative ones, and above 10,000 years,
// the most that google.protobuf.Duration holds.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);

// A form that ParseDuration takes: "30s", "1h30m", "7d". Exact. Of a duration
// that is not negative.
std::string DurationText(absl::Duration duration);

// Reads a whole number of bytes, or a number and a unit: B, kB, MB, GB, TB, PB,
// EB (powers of 1000), KiB, MiB, GiB, TiB, PiB, EiB (of 1024): "4096", "64MiB",
// "1.5 GiB". Parts of a byte are rounded. INVALID_ARGUMENT, which repeats the
// text, for all else, and for what 64 bits do not hold.
absl::StatusOr<uint64_t> ParseSize(absl::string_view text);

// With four digits: "64 MiB", "1.5 KiB", "17 B".
std::string SizeText(uint64_t bytes);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_UNITS_H_

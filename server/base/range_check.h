// Whether a field is in its range, and an error that names both.

#ifndef TIMECACHED_SERVER_BASE_RANGE_CHECK_H_
#define TIMECACHED_SERVER_BASE_RANGE_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace timecache::server {

// INVALID_ARGUMENT about `field` unless least <= value <= most.
absl::Status CheckNumber(absl::string_view field, int64_t value, int64_t least,
                         int64_t most);
// The same of a time.
absl::Status CheckDuration(absl::string_view field, int64_t value_us,
                           int64_t least_us, int64_t most_us);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_RANGE_CHECK_H_

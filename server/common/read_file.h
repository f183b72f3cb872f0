#ifndef TIMECACHED_SERVER_COMMON_READ_FILE_H_
#define TIMECACHED_SERVER_COMMON_READ_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace timecache {

// The bytes of a file. Errors begin with the path and say why, as the system
// does: NOT_FOUND, PERMISSION_DENIED, or the code that fits its reason;
// INVALID_ARGUMENT for one that is no regular file (reading a pipe could wait
// for ever); RESOURCE_EXHAUSTED for one longer than `bytes_max`. Thread-safe.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_COMMON_READ_FILE_H_

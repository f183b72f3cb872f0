#ifndef TIMECACHED_SERVER_BASE_READ_FILE_H_
#define TIMECACHED_SERVER_BASE_READ_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace timecache {

enum class FileKind {
  kRegular,
  // Pipes and devices as well: reading one may block forever.
  kAny,
};

// The bytes of a file. Errors begin with the path and the system's reason:
// NOT_FOUND, PERMISSION_DENIED, or the code that fits its reason;
// INVALID_ARGUMENT for a directory, and for what is not of `kind`;
// RESOURCE_EXHAUSTED for one longer than `bytes_max`. Thread-safe.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max,
                                     FileKind kind = FileKind::kRegular);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_READ_FILE_H_

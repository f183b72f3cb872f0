// Certificates, keys and tokens are read from small files.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace timecache {

inline constexpr size_t kMaxSmallFileBytes = 1 << 20;

// The whole file. The error begins with the path and says why, as the system
// does; INVALID_ARGUMENT above kMaxSmallFileBytes.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path);

}  // namespace timecache

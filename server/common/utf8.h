#ifndef TIMECACHED_SERVER_COMMON_UTF8_H_
#define TIMECACHED_SERVER_COMMON_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace timecache {

// The place of the first byte that is not part of well-formed UTF-8 (RFC 3629),
// or npos. Thread-safe; linear in the text.
size_t FindInvalidUtf8(absl::string_view text);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_COMMON_UTF8_H_

#ifndef TIMECACHED_SERVER_BASE_UTF8_H_
#define TIMECACHED_SERVER_BASE_UTF8_H_

#include <cstddef>

#include "absl/strings/string_view.h"

namespace timecache {

// Well-formed UTF-8 is RFC 3629's: nothing overlong, no surrogates.
// Thread-safe.

// The bytes of the character that `text` begins with, 1 to 4; 0 if it begins
// with none.
size_t Utf8CharacterLength(absl::string_view text);

// The place of the first byte that is not part of well-formed UTF-8, or npos.
// Linear in the text.
size_t FindInvalidUtf8(absl::string_view text);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_UTF8_H_

// Keys and values are bytes; a terminal and JSON want text. How they are taken
// and shown.

#ifndef TIMECACHED_CLIENT_CLI_UI_BYTES_H_
#define TIMECACHED_CLIENT_CLI_UI_BYTES_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace timecache::cli {

enum class Encoding {
  kText,    // As they are; see Escape for how they are shown.
  kHex,     // "00ff": two digits a byte, either case.
  kBase64,  // "AP8=": RFC 4648, section 4.
};

// Keys are mostly text and values often are not, so each has its own.
struct Encodings {
  Encoding key = Encoding::kText;
  Encoding value = Encoding::kText;
};

// Safe to show, on one line, and unambiguous: control characters and bytes that
// are not UTF-8 become \xNN, a backslash becomes two. The rest stays.
std::string Escape(std::string_view bytes);

// The inverse of Escape. INVALID_ARGUMENT for a backslash that Escape does not
// write: neither two of them nor \xNN.
absl::StatusOr<std::string> Unescape(std::string_view text);

// The bytes in that form; text is escaped.
std::string Encode(std::string_view bytes, Encoding encoding);

// The bytes that the text stands for; text stands for itself. INVALID_ARGUMENT
// if it is not of that form.
absl::StatusOr<std::string> Decode(std::string_view text, Encoding encoding);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_BYTES_H_

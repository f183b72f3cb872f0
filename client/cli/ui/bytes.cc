#include "client/cli/ui/bytes.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "server/base/utf8.h"

namespace timecache::cli {
namespace {

absl::string_view View(std::string_view text) {
  return {text.data(), text.size()};
}

// C0, DEL, and C1, which in UTF-8 is two bytes and which terminals obey.
bool IsControl(std::string_view character) {
  const uint8_t first = character[0];
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<uint8_t>(character[1]) < 0xa0;
}

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

absl::StatusOr<std::string> DecodeHex(std::string_view text) {
  if (text.size() % 2 != 0) {
    return absl::InvalidArgumentError("not hex: an odd number of digits");
  }
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexDigit(text[i]);
    const int low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) {
      return absl::InvalidArgumentError(
          absl::StrFormat("not hex: digit %d", i + (high < 0 ? 1 : 2)));
    }
    bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return bytes;
}

}  // namespace

std::string Escape(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = Utf8CharacterLength(View(bytes));
    const std::string_view character =
        bytes.substr(0, length == 0 ? 1 : length);
    if (length == 0 || IsControl(character)) {
      for (const char byte : character) {
        absl::StrAppendFormat(&text, "\\x%02x", static_cast<uint8_t>(byte));
      }
    } else if (character == "\\") {
      text += "\\\\";
    } else {
      text += character;
    }
    bytes.remove_prefix(character.size());
  }
  return text;
}

absl::StatusOr<std::string> Unescape(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes.push_back(text[i]);
    } else if (i + 1 < text.size() && text[i + 1] == '\\') {
      bytes.push_back('\\');
      i += 1;
    } else if (i + 3 < text.size() && text[i + 1] == 'x' &&
               HexDigit(text[i + 2]) >= 0 && HexDigit(text[i + 3]) >= 0) {
      bytes.push_back(static_cast<char>(HexDigit(text[i + 2]) << 4 |
                                        HexDigit(text[i + 3])));
      i += 3;
    } else {
      return absl::InvalidArgumentError(absl::StrFormat(
          "byte %d: a backslash is written as two, another byte as \\xNN",
          i + 1));
    }
  }
  return bytes;
}

std::string Encode(std::string_view bytes, Encoding encoding) {
  switch (encoding) {
    case Encoding::kHex:
      return absl::BytesToHexString(View(bytes));
    case Encoding::kBase64:
      return absl::Base64Escape(View(bytes));
    case Encoding::kText:
      break;
  }
  return Escape(bytes);
}

absl::StatusOr<std::string> Decode(std::string_view text, Encoding encoding) {
  if (encoding == Encoding::kHex) return DecodeHex(text);
  if (encoding == Encoding::kText) return std::string(text);
  std::string bytes;
  // Unescape would pass over spaces.
  const bool spaces =
      std::any_of(text.begin(), text.end(), absl::ascii_isspace);
  if (spaces || !absl::Base64Unescape(View(text), &bytes)) {
    return absl::InvalidArgumentError("not base64");
  }
  return bytes;
}

}  // namespace timecache::cli

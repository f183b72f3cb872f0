#include "server/base/utf8.h"

#include <cstdint>

namespace timecache {

size_t Utf8CharacterLength(absl::string_view text) {
  // By its length, the least code point that is written with so many bytes.
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (text.empty()) return 0;
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return 1;
  if (lead < 0xc0 || lead >= 0xf8) return 0;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (length > text.size()) return 0;
  uint32_t point = lead & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    point = point << 6 | (next & 0x3f);
  }
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  return point < kLeast[length] || point > 0x10ffff || surrogate ? 0 : length;
}

size_t FindInvalidUtf8(absl::string_view text) {
  for (size_t start = 0; start < text.size();) {
    const size_t length = Utf8CharacterLength(text.substr(start));
    if (length == 0) return start;
    start += length;
  }
  return absl::string_view::npos;
}

}  // namespace timecache

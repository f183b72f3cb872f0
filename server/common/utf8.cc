#include "server/common/utf8.h"

#include <cstdint>

namespace timecache {
namespace {

// How many bytes the character takes that begins with `lead`, 0 if none does;
// and the least code point that may be written with so many, for others are
// overlong.
struct Form {
  size_t length;
  uint32_t least;
};

Form FormOf(unsigned char lead) {
  if (lead < 0x80) return {1, 0};
  if (lead >= 0xc0 && lead < 0xe0) return {2, 0x80};
  if (lead >= 0xe0 && lead < 0xf0) return {3, 0x800};
  if (lead >= 0xf0 && lead < 0xf8) return {4, 0x10000};
  return {0, 0};
}

}  // namespace

size_t FindInvalidUtf8(absl::string_view text) {
  for (size_t start = 0; start < text.size();) {
    const auto lead = static_cast<unsigned char>(text[start]);
    const Form form = FormOf(lead);
    if (form.length == 0 || form.length > text.size() - start) return start;
    uint32_t point = form.length == 1 ? lead : lead & (0x7fu >> form.length);
    for (size_t i = 1; i < form.length; ++i) {
      const auto next = static_cast<unsigned char>(text[start + i]);
      if ((next & 0xc0) != 0x80) return start;
      point = point << 6 | (next & 0x3f);
    }
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point < form.least || point > 0x10ffff || surrogate) return start;
    start += form.length;
  }
  return absl::string_view::npos;
}

}  // namespace timecache

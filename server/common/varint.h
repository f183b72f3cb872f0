// Numbers in as few bytes as they need, as protobuf has them: seven bits a
// byte, the lowest first, the eighth bit set but in the last.

#ifndef TIMECACHED_SERVER_COMMON_VARINT_H_
#define TIMECACHED_SERVER_COMMON_VARINT_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace timecache::server {

inline constexpr size_t kMaxVarintBytes = 10;

constexpr size_t VarintSize(uint64_t value) {
  return static_cast<size_t>(std::bit_width(value | 1) + 6) / 7;
}

// Writes VarintSize bytes, and returns their end.
inline char* PutVarint(uint64_t value, char* to) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

inline void PutVarint(uint64_t value, std::string* to) {
  for (; value >= 0x80; value >>= 7) {
    to->push_back(static_cast<char>(value | 0x80));
  }
  to->push_back(static_cast<char>(value));
}

// Takes one that is known to be whole; returns its end.
template <typename Number>
const char* GetVarint(const char* from, Number* value) {
  static_assert(sizeof(Number) >= sizeof(uint32_t));
  auto byte = static_cast<uint8_t>(*from++);
  Number result = byte & 0x7fu;
  for (int shift = 7; byte >= 0x80; shift += 7) {
    byte = static_cast<uint8_t>(*from++);
    result |= static_cast<Number>(byte & 0x7fu) << shift;
  }
  *value = result;
  return from;
}

// Takes one off the front. False, and nothing is taken, if none begins there.
inline bool TakeVarint(absl::string_view* from, uint64_t* value) {
  const size_t size = std::min(from->size(), kMaxVarintBytes);
  uint64_t result = 0;
  for (size_t i = 0; i < size; ++i) {
    const auto byte = static_cast<uint8_t>((*from)[i]);
    result |= uint64_t{byte & 0x7fu} << (7 * i);
    if (byte < 0x80) {
      from->remove_prefix(i + 1);
      *value = result;
      return true;
    }
  }
  return false;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_COMMON_VARINT_H_

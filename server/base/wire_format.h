// Protobuf's wire format: fields are a tag, then a varint, or a length and as
// many bytes. A varint is a number in as few bytes as it needs: seven bits a
// byte, the lowest first, the eighth bit set in all but the last.
// https://protobuf.dev/programming-guides/encoding/

#ifndef TIMECACHED_SERVER_BASE_WIRE_FORMAT_H_
#define TIMECACHED_SERVER_BASE_WIRE_FORMAT_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace timecache::server {

inline constexpr int kVarint = 0;
inline constexpr int kLengthDelimited = 2;

// The tag of a field with a number below 16.
constexpr uint8_t WireTag(int number, int wire_type) {
  return static_cast<uint8_t>(number << 3 | wire_type);
}

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
  if (value < 0x80) return to->push_back(static_cast<char>(value));
  char bytes[kMaxVarintBytes];
  to->append(bytes, static_cast<size_t>(PutVarint(value, bytes) - bytes));
}

// A field of bytes; of an empty one nothing is written, as proto3 has it.
constexpr size_t BytesSize(absl::string_view bytes) {
  return bytes.empty() ? 0 : 1 + VarintSize(bytes.size()) + bytes.size();
}
inline char* PutRaw(absl::string_view bytes, char* to) {
  // A view of nothing may be null, which memcpy must not be given.
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}
inline char* PutBytes(uint8_t tag, absl::string_view bytes, char* to) {
  if (bytes.empty()) return to;
  *to++ = static_cast<char>(tag);
  return PutRaw(bytes, PutVarint(bytes.size(), to));
}
inline void PutBytes(uint8_t tag, absl::string_view bytes, std::string* to) {
  if (bytes.empty()) return;
  to->push_back(static_cast<char>(tag));
  PutVarint(bytes.size(), to);
  to->append(bytes.data(), bytes.size());
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

// Consumes a varint at the front. False, and consumes nothing, if there is
// none.
inline bool TakeVarint(absl::string_view* from, uint64_t* value) {
  if (!from->empty() && static_cast<uint8_t>(from->front()) < 0x80) {
    *value = static_cast<uint8_t>(from->front());
    from->remove_prefix(1);
    return true;
  }
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

#endif  // TIMECACHED_SERVER_BASE_WIRE_FORMAT_H_

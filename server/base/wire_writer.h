// Writes protobuf's wire format from its end to its beginning: so the length of
// a message is known where it must be written, and nothing is measured before.

#ifndef TIMECACHED_SERVER_BASE_WIRE_WRITER_H_
#define TIMECACHED_SERVER_BASE_WIRE_WRITER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"
#include "server/base/wire_format.h"

namespace timecache::server::wire {

// Each of these functions writes what ends at `at`, and returns where it begins;
// fields are written in reverse, too. Those that are called in more than one
// place and do little are inline: what lies in registers would be saved and
// restored around a call.

inline char* WriteByte(uint8_t byte, char* at) {
  *--at = static_cast<char>(byte);
  return at;
}

// The eight groups of seven bits of a number below 2^56, each in a byte of its
// own: parts the number into halves of four groups, quarters of two, and bytes.
// To add an upper part 2^k - 1 times is to shift it up by k.
inline uint64_t Spread(uint64_t value) {
  value += (value & 0x00fffffff0000000) * 15;
  value += (value & 0x0fffc0000fffc000) * 3;
  value += value & 0x3f803f803f803f80;
  return value;
}

// The varint of a number below 2^56, without a loop: the last of eight bytes,
// behind `unused` ones that mean nothing.
struct Varint {
  explicit Varint(uint64_t value) {
    const uint64_t groups = Spread(value);
    unused = static_cast<size_t>(std::countl_zero(groups | 1)) / 8;
    // All bytes but the last say that another follows.
    bytes = groups << (8 * unused) | 0x0080808080808080;
  }

  uint64_t bytes;
  size_t unused;
};
static_assert(std::endian::native == std::endian::little,
              "the lowest bits of a number stand first");

// The unused bytes are written, too, where something else will be: there must
// be room for them in front of the message.
inline constexpr size_t kSlack = sizeof Varint::bytes;

inline char* WriteVarint(Varint varint, char* at) {
  at -= sizeof varint.bytes;
  std::memcpy(at, &varint.bytes, sizeof varint.bytes);
  return at + varint.unused;
}

ABSL_ATTRIBUTE_NOINLINE inline char* WriteAnyVarint(uint64_t value, char* at) {
  at -= VarintSize(value);
  PutVarint(value, at);
  return at;
}

// Of a field with the default value nothing is written, as proto3 has it.
inline char* WriteNumber(uint8_t tag, uint64_t value, char* at) {
  if (value == 0) return at;
  at = value >> 56 == 0 ? WriteVarint(Varint(value), at)
                        : WriteAnyVarint(value, at);
  return WriteByte(tag, at);
}

// Mostly one byte or two.
inline char* WriteLength(size_t length, char* at) {
  if (length < 0x80) return WriteByte(static_cast<uint8_t>(length), at);
  if (length >= 0x4000) return WriteAnyVarint(length, at);
  at = WriteByte(static_cast<uint8_t>(length >> 7), at);
  return WriteByte(static_cast<uint8_t>(length | 0x80), at);
}

// Closes a message that was written from `end` to `at`.
inline char* WriteHead(uint8_t tag, const char* end, char* at) {
  return WriteByte(tag, WriteLength(static_cast<size_t>(end - at), at));
}

inline char* WriteRaw(absl::string_view bytes, char* at) {
  at -= bytes.size();
  // A view of nothing may be null, which memcpy must not be given.
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at;
}

inline char* WriteBytes(uint8_t tag, absl::string_view value, char* at) {
  if (value.empty()) return at;
  return WriteHead(tag, at, WriteRaw(value, at));
}

}  // namespace timecache::server::wire

#endif  // TIMECACHED_SERVER_BASE_WIRE_WRITER_H_

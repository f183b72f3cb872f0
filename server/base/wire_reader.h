// Reads protobuf's wire format in place.

#ifndef TIMECACHED_SERVER_BASE_WIRE_READER_H_
#define TIMECACHED_SERVER_BASE_WIRE_READER_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"
#include "server/base/wire_format.h"

namespace timecache::server {

// A number, and where it ends: null if there is none.
struct LongVarint {
  uint64_t value;
  const char* end;
};

// Separate from WireReader, and all by value, so that its pointers can stay in
// registers.
LongVarint ReadLongVarint(const char* at, const char* end, int max_bytes);

// Reads the protobuf wire format. Every call returns false for input that it
// does not support, malformed or only unusual.
//
// Lengths and what they are of are read inline whatever the compiler thinks of
// it: a put in a batch has four of them, and at a call the position leaves its
// register.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }

  // Whether this tag is next; consumes it if so.
  bool Skip(uint8_t tag) {
    if (at_ == end_ || static_cast<uint8_t>(*at_) != tag) return false;
    ++at_;
    return true;
  }

  // One byte, as the tags of all fields that these messages have. The first of
  // a longer one is none of theirs.
  bool Tag(uint8_t* tag) {
    if (at_ == end_) return false;
    *tag = static_cast<uint8_t>(*at_++);
    return true;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Varint(uint64_t* value,
                                           int max_bytes = 10) {
    if (at_ == end_) return false;
    // Nearly all flags and lengths take one byte or two.
    const uint64_t first = static_cast<uint8_t>(*at_);
    if (first < 0x80) {
      at_ += 1;
      *value = first;
      return true;
    }
    if (end_ - at_ >= 2) {
      const uint64_t second = static_cast<uint8_t>(at_[1]);
      if (second < 0x80) {
        at_ += 2;
        *value = (first & 0x7f) | second << 7;
        return true;
      }
    }
    const LongVarint read = ReadLongVarint(at_, end_, max_bytes);
    at_ = read.end;
    *value = read.value;
    return at_ != nullptr;
  }

  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Bytes(absl::string_view* value) {
    uint64_t size;
    if (!Varint(&size, kMaxLengthBytes) ||
        size > static_cast<uint64_t>(end_ - at_)) {
      return false;
    }
    *value = absl::string_view(at_, static_cast<size_t>(size));
    at_ += size;
    return true;
  }

  // What must be all that is left.
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool Rest(absl::string_view* value) {
    uint64_t size;
    if (!Varint(&size, kMaxLengthBytes) ||
        size != static_cast<uint64_t>(end_ - at_)) {
      return false;
    }
    *value = absl::string_view(at_, static_cast<size_t>(size));
    at_ = end_;
    return true;
  }

  bool Bool(bool* value) {
    uint64_t number;
    if (!Varint(&number) || number > 1) return false;
    *value = number == 1;
    return true;
  }

 private:
  // The generated parser refuses longer ones, whatever their value.
  static constexpr int kMaxLengthBytes = 5;

  const char* at_;
  const char* end_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_WIRE_READER_H_

// How an entry lies in a segment: a header of ten bytes for a small entry, the
// key, the value. No pointer, no padding.

#ifndef TIMECACHED_SERVER_ENGINE_MAP_RECORD_H_
#define TIMECACHED_SERVER_ENGINE_MAP_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"

namespace timecache::server {

// What a record says, its views into the segment.
struct Record {
  absl::string_view key = {};
  absl::string_view value = {};
  // Of the value: a renewal keeps it. Never 0.
  uint64_t version = 0;
  int64_t put_us = 0;
  int64_t ttl_us = 0;
  // Whether ttl_us came with the put, or was the map's.
  bool own_ttl = false;

  int64_t deadline_us() const { return put_us + ttl_us; }
  // What limits and statistics count of it.
  int64_t payload_bytes() const {
    return static_cast<int64_t>(key.size() + value.size());
  }
};

// What a segment's records are written against: a record whose version and put
// time lie within 32 bits of the base's and whose TTL is the base's is narrow.
struct RecordBase {
  uint64_t version = 0;
  int64_t put_us = 0;
  int64_t ttl_us = 0;
};

// Layout, all integers little-endian:
//   varint  key size << 2 | own ttl << 1 | wide
//   varint  value size
//   narrow: int32 version - base, int32 put time - base
//   wide:   uint64 version, int64 put time, int64 ttl
//   key, value

// The bytes that the record takes against this base.
size_t EncodedSize(const Record& record, const RecordBase& base);

// Writes EncodedSize bytes.
void EncodeRecord(const Record& record, const RecordBase& base, char* to);

// Marks a record that was encoded as dead: nothing refers to it any more, and a
// walk over its segment need not ask the index. Its key, value and size stay as
// they were; what else it said is lost.
void MarkRecordDead(char* record);

namespace record_internal {

// In place of the version, narrow and wide: a record with another is live.
inline constexpr int32_t kDeadNarrow = INT32_MIN;
inline constexpr uint64_t kDeadWide = 0;

inline constexpr uint32_t kWide = 1;
inline constexpr uint32_t kOwnTtl = 2;
inline constexpr int kFlagBits = 2;
inline constexpr size_t kNarrowBytes = 2 * sizeof(int32_t);
inline constexpr size_t kWideBytes = 3 * sizeof(int64_t);

inline const char* GetVarint(const char* from, uint32_t* value) {
  uint32_t byte = static_cast<uint8_t>(*from++);
  uint32_t result = byte & 0x7f;
  for (int shift = 7; byte >= 0x80; shift += 7) {
    byte = static_cast<uint8_t>(*from++);
    result |= (byte & 0x7f) << shift;
  }
  *value = result;
  return from;
}

template <typename T>
T GetFixed(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace record_internal

// Reads a record that EncodeRecord wrote against the same base. `*size` gets
// the bytes that it takes. Inline: every lookup ends here.
inline Record DecodeRecord(const char* from, const RecordBase& base,
                           size_t* size) {
  using namespace record_internal;  // NOLINT
  Record record;
  const char* at = from;
  uint32_t key_word;
  uint32_t value_size;
  at = GetVarint(at, &key_word);
  at = GetVarint(at, &value_size);
  record.own_ttl = (key_word & kOwnTtl) != 0;
  if ((key_word & kWide) == 0) {
    record.version = base.version + static_cast<int64_t>(GetFixed<int32_t>(at));
    record.put_us = base.put_us + GetFixed<int32_t>(at + sizeof(int32_t));
    record.ttl_us = base.ttl_us;
    at += kNarrowBytes;
  } else {
    record.version = GetFixed<uint64_t>(at);
    record.put_us = GetFixed<int64_t>(at + sizeof(int64_t));
    record.ttl_us = GetFixed<int64_t>(at + 2 * sizeof(int64_t));
    at += kWideBytes;
  }
  record.key = absl::string_view(at, key_word >> kFlagBits);
  at += record.key.size();
  record.value = absl::string_view(at, value_size);
  *size = static_cast<size_t>(at + value_size - from);
  return record;
}

// Whether MarkRecordDead was called.
inline bool IsRecordDead(const char* from) {
  using namespace record_internal;  // NOLINT
  uint32_t key_word;
  uint32_t value_size;
  const char* at = GetVarint(from, &key_word);
  at = GetVarint(at, &value_size);
  return (key_word & kWide) == 0 ? GetFixed<int32_t>(at) == kDeadNarrow
                                 : GetFixed<uint64_t>(at) == kDeadWide;
}

// Only the key of such a record.
inline absl::string_view DecodeKey(const char* from) {
  using namespace record_internal;  // NOLINT
  uint32_t key_word;
  uint32_t value_size;
  const char* at = GetVarint(from, &key_word);
  at = GetVarint(at, &value_size);
  at += (key_word & kWide) == 0 ? kNarrowBytes : kWideBytes;
  return absl::string_view(at, key_word >> kFlagBits);
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_MAP_RECORD_H_

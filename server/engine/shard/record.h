// How an entry lies in a segment: a header of ten bytes for a small entry, the
// key, the value. No pointer, no padding.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_RECORD_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "server/common/wire_format.h"
#include "server/engine/scan.h"

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
  // Whether the value is GatheredParts.
  bool parts = false;
  // How long the value may grow where it lies; 0 if it may not.
  uint32_t capacity = 0;

  int64_t deadline_us() const { return put_us + ttl_us; }
  // What limits and statistics count of it.
  int64_t payload_bytes() const {
    return static_cast<int64_t>(key.size() + value.size());
  }
  EntryView view() const {
    return {key, value, version, put_us, deadline_us(), parts};
  }
};

// What a segment's records are written against: a record whose version and put
// time lie within 32 bits of the base's, whose TTL is the base's and whose
// value neither grows nor has parts is narrow.
struct RecordBase {
  uint64_t version = 0;
  int64_t put_us = 0;
  int64_t ttl_us = 0;
};

// Layout, all integers little-endian:
//   varint  key size << 2 | own ttl << 1 | wide
//   varint  value size; of four bytes in any case, if it is growable
//   narrow: int32 version - base, int32 put time - base
//   wide:   uint64 version, int64 put time, int64 ttl,
//           uint8 parts << 1 | growable, and if it is, uint32 capacity
//   key, value; if growable, as many bytes as the capacity has, some unused

// The bytes that the record takes against this base.
size_t EncodedSize(const Record& record, const RecordBase& base);

// Writes EncodedSize bytes, but for those that a value may grow by, and for a key
// and a value that are there already: then O(1).
void EncodeRecord(const Record& record, const RecordBase& base, char* to);

// Appends `more` to the value of a growable record that lies at `at` and has
// the capacity. `record` is what it says, but for version and times, which it
// gets anew. O(more).
void ExtendRecord(Record record, absl::string_view more, char* at);

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
inline constexpr size_t kWideBytes = 3 * sizeof(int64_t) + 1;
// Of the last byte of these.
inline constexpr uint8_t kGrowable = 1;
inline constexpr uint8_t kParts = 2;
inline constexpr size_t kCapacityBytes = sizeof(uint32_t);

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
  uint32_t value_room = value_size;
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
    const auto flags = static_cast<uint8_t>(at[-1]);
    record.parts = (flags & kParts) != 0;
    if ((flags & kGrowable) != 0) {
      record.capacity = value_room = GetFixed<uint32_t>(at);
      at += kCapacityBytes;
    }
  }
  record.key = absl::string_view(at, key_word >> kFlagBits);
  at += record.key.size();
  record.value = absl::string_view(at, value_size);
  *size = static_cast<size_t>(at + value_room - from);
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
  if ((key_word & kWide) == 0) {
    at += kNarrowBytes;
  } else {
    at += kWideBytes;
    if ((static_cast<uint8_t>(at[-1]) & kGrowable) != 0) at += kCapacityBytes;
  }
  return absl::string_view(at, key_word >> kFlagBits);
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_RECORD_H_

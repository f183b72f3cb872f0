// How an entry lies in a segment: a header of ten bytes for a small entry, the
// key, the value. No pointer, no padding.

#ifndef TIMECACHED_SERVER_ENGINE_RECORD_H_
#define TIMECACHED_SERVER_ENGINE_RECORD_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace timecache {

// What a record says, its views into the segment.
struct Record {
  absl::string_view key;
  absl::string_view value;
  // The shard's count of changes when it was written; the version without the
  // shard.
  uint64_t count = 0;
  int64_t put_us = 0;
  int64_t ttl_us = 0;
  // Whether ttl_us came with the put, or was the map's.
  bool own_ttl = false;

  int64_t deadline_us() const { return put_us + ttl_us; }
};

// What a segment's records are written against: a record whose count and put
// time lie within 32 bits of the base's and whose TTL is the base's is narrow.
struct RecordBase {
  uint64_t count = 0;
  int64_t put_us = 0;
  int64_t ttl_us = 0;
};

// Layout, all integers little-endian:
//   varint  key size << 2 | own ttl << 1 | wide
//   varint  value size
//   narrow: int32 count - base, int32 put time - base
//   wide:   uint64 count, int64 put time, int64 ttl
//   key, value

// The bytes that the record takes against this base.
size_t EncodedSize(const Record& record, const RecordBase& base);

// Writes EncodedSize bytes.
void EncodeRecord(const Record& record, const RecordBase& base, char* to);

// Reads a record that EncodeRecord wrote against the same base. `*size` gets
// the bytes that it takes.
Record DecodeRecord(const char* from, const RecordBase& base, size_t* size);

// Only the key of such a record.
absl::string_view DecodeKey(const char* from);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_ENGINE_RECORD_H_

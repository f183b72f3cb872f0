// How an entry lies in a segment: a header of ten bytes for a small entry, the
// key, the value. No pointer, no padding.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_RECORD_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/string_view.h"
#include "server/base/wire_format.h"
#include "server/engine/store/scan.h"
#include "server/engine/store/traceparent.h"

namespace timecache::server {

// What a record says, its views into the segment.
struct Record {
  absl::string_view key = {};
  absl::string_view value = {};
  // Of the value: a renewal keeps it. Never 0.
  uint64_t version = 0;
  // When its life began, and how long that is: its TTL, or until the time that
  // was asked for, which may be before put_us.
  int64_t put_us = 0;
  int64_t life_us = 0;
  // When the key began to be there.
  int64_t create_us = 0;
  // What a renewal gives it; 0: the map's TTL.
  int64_t own_ttl_us = 0;
  // Whether the value is GatheredParts.
  bool parts = false;
  // How long the value may grow where it lies; 0 if it may not.
  uint32_t capacity = 0;
  // Behind the value and its room: see part_index.h. Only of parts.
  absl::string_view index = {};
  // A packed traceparent, kTraceBytes; null: none.
  const char* trace = nullptr;

  int64_t deadline_us() const { return put_us + life_us; }
  // All its times are as a put with no others than these makes them.
  void SetTimes(int64_t put, int64_t life, int64_t own_ttl) {
    put_us = create_us = put;
    life_us = life;
    own_ttl_us = own_ttl;
  }
  // All that the version identifies, and where it lies.
  void CopyValue(const Record& from) {
    value = from.value;
    parts = from.parts;
    capacity = from.capacity;
    index = from.index;
    trace = from.trace;
  }
  void CopyTimes(const Record& from) {
    put_us = from.put_us;
    life_us = from.life_us;
    create_us = from.create_us;
    own_ttl_us = from.own_ttl_us;
  }
  // What limits and statistics count of it.
  int64_t payload_bytes() const {
    return static_cast<int64_t>(key.size() + value.size());
  }
  EntryView view() const {
    return {
        key,       value,         version,
        put_us,    deadline_us(), parts,
        create_us, own_ttl_us,    {trace, trace != nullptr ? kTraceBytes : 0}};
  }
};

// What a segment's records are written against: the numbers of most records are
// small differences from these.
struct RecordBase {
  uint64_t version = 0;
  int64_t put_us = 0;
  int64_t life_us = 0;
};

// Layout, all integers little-endian:
//   varint  key size << 2 | form
//   varint  value size; of four bytes in any case, if it is growable
//   int32 version - base, int32 put time - base; a wide one: uint64 version,
//           int64 put time
//   where more is known, and in a wide one: uint8 of flags, and for each of these
//           that is set, in this order: uint32 capacity, signed varint life,
//           varint own TTL, put time - create time in six bytes or eight, uint8
//           whose power of two the index has in slots; where both flags of an own
//           TTL are set, behind that, which may be 0, the traceparent
//   key, value; if growable, as many bytes as the capacity has, some unused
//   index of parts
// A record has the base's life, no own TTL or its life as that, its put time as
// its create time, and a value that neither grows nor has parts, as far as it
// has no flag that says otherwise. So one that a renewal has kept alive takes
// seven bytes more, however old it is, one with an own TTL none, and one with a
// traceparent 27.

// The bytes that the record takes against this base.
size_t EncodedSize(const Record& record, const RecordBase& base);

// Writes EncodedSize bytes, but for those that a value may grow by, and for a
// key, a value and an index that are there already: then O(1).
void EncodeRecord(const Record& record, const RecordBase& base, char* to);

// The same in one step, if the record takes at least `least` bytes and at most
// `most`. Returns how many it takes, or 0: then nothing was written.
size_t EncodeRecordWithin(const Record& record, const RecordBase& base,
                          size_t least, size_t most, char* to);

// Appends `more` to the value of a growable record that lies at `at` and has
// the capacity. `record` is what it says, but for version and times, which it
// gets anew: it must have the EncodedSize that it had. O(more).
void ExtendRecord(Record record, const RecordBase& base, absl::string_view more,
                  char* at);

// Marks a record that was encoded as dead: nothing refers to it any more, and a
// walk over its segment need not ask the index. Its key, value and size stay as
// they were; what else it said is lost.
void MarkRecordDead(char* record);

namespace record_internal {

// In place of the version, narrow and wide: a record with another is live.
inline constexpr int32_t kDeadNarrow = INT32_MIN;
inline constexpr uint64_t kDeadWide = 0;

// Forms.
inline constexpr uint32_t kPlain = 0;
inline constexpr uint32_t kWide = 1;
// Plain, with the life as its own TTL.
inline constexpr uint32_t kOwn = 2;
// As a plain one, with flags, as a wide one has them, too.
inline constexpr uint32_t kMore = 3;
static_assert((kMore & kWide) != 0 && (kOwn & kWide) == 0);
inline constexpr int kFormBits = 2;
inline constexpr uint32_t kFormMask = (1 << kFormBits) - 1;
inline constexpr size_t kNarrowBytes = 2 * sizeof(int32_t);
inline constexpr size_t kWideBytes = 2 * sizeof(int64_t);
// Flags.
inline constexpr uint8_t kGrowable = 1;
inline constexpr uint8_t kParts = 2;
inline constexpr uint8_t kOtherLife = 4;
// The own TTL is the life, or another. Both: see the layout.
inline constexpr uint8_t kOwnIsLife = 8;
inline constexpr uint8_t kOtherOwn = 16;
inline constexpr uint8_t kTraced = kOwnIsLife | kOtherOwn;
inline constexpr uint8_t kCreatedBefore = 32;
// 64 is record.cc's.
inline constexpr uint8_t kIndexed = 128;
inline constexpr size_t kCapacityBytes = sizeof(uint32_t);
// Of an age, of a fixed size: a record that is overwritten once it is older
// keeps its.
inline constexpr size_t kAgeBytes = 6;

template <typename T>
T GetFixed(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// What stands where flags are. `*record` has its other numbers. Returns the
// end.
const char* GetMore(const char* at, Record* record, size_t* index_bytes);

}  // namespace record_internal

// Reads a record that EncodeRecord wrote against the same base. `*record` must
// be fresh; it is filled where it is, as a copy of what has just been written
// would wait for it. `*size` gets the bytes that it takes. Inline: every lookup
// ends here.
inline void DecodeRecord(const char* from, const RecordBase& base,
                         Record* record, size_t* size) {
  using namespace record_internal;  // NOLINT
  const char* at = from;
  uint32_t key_word;
  uint32_t value_size;
  at = GetVarint(at, &key_word);
  at = GetVarint(at, &value_size);
  const uint32_t form = key_word & kFormMask;
  uint32_t value_room = value_size;
  size_t index_bytes = 0;
  record->life_us = base.life_us;
  if (form != kWide) {
    record->version =
        base.version + static_cast<int64_t>(GetFixed<int32_t>(at));
    record->put_us = base.put_us + GetFixed<int32_t>(at + sizeof(int32_t));
    at += kNarrowBytes;
  } else {
    record->version = GetFixed<uint64_t>(at);
    record->put_us = GetFixed<int64_t>(at + sizeof(int64_t));
    at += kWideBytes;
  }
  record->create_us = record->put_us;
  if (form == kOwn) record->own_ttl_us = record->life_us;
  if ((form & kWide) != 0) {
    if (*at == kCreatedBefore) [[likely]] {
      // Was overwritten: the age is the upper part of what ends with it.
      const auto age =
          GetFixed<uint64_t>(at + 1 + kAgeBytes - sizeof(uint64_t));
      record->create_us =
          static_cast<int64_t>(static_cast<uint64_t>(record->put_us) -
                               (age >> (8 * (sizeof(age) - kAgeBytes))));
      at += 1 + kAgeBytes;
    } else {
      at = GetMore(at, record, &index_bytes);
      if (record->capacity != 0) value_room = record->capacity;
    }
  }
  record->key = absl::string_view(at, key_word >> kFormBits);
  at += record->key.size();
  record->value = absl::string_view(at, value_size);
  at += value_room;
  record->index = absl::string_view(at, index_bytes);
  *size = static_cast<size_t>(at + index_bytes - from);
}
inline Record DecodeRecord(const char* from, const RecordBase& base,
                           size_t* size) {
  Record record;
  DecodeRecord(from, base, &record, size);
  return record;
}

// Whether MarkRecordDead was called.
inline bool IsRecordDead(const char* from) {
  using namespace record_internal;  // NOLINT
  uint32_t key_word;
  uint32_t value_size;
  const char* at = GetVarint(from, &key_word);
  at = GetVarint(at, &value_size);
  return (key_word & kFormMask) != kWide ? GetFixed<int32_t>(at) == kDeadNarrow
                                         : GetFixed<uint64_t>(at) == kDeadWide;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_RECORD_H_

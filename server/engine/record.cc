#include "server/engine/record.h"

#include <bit>
#include <cstring>
#include <limits>

namespace timecache {
namespace {

static_assert(std::endian::native == std::endian::little,
              "records are copied as they lie in memory");

constexpr uint32_t kWide = 1;
constexpr uint32_t kOwnTtl = 2;
constexpr int kFlagBits = 2;
constexpr size_t kNarrowBytes = 2 * sizeof(int32_t);
constexpr size_t kWideBytes = 3 * sizeof(int64_t);

bool Fits32(int64_t difference) {
  return difference >= std::numeric_limits<int32_t>::min() &&
         difference <= std::numeric_limits<int32_t>::max();
}

bool IsNarrow(const Record& record, const RecordBase& base) {
  return record.ttl_us == base.ttl_us &&
         Fits32(static_cast<int64_t>(record.count - base.count)) &&
         Fits32(record.put_us - base.put_us);
}

size_t VarintSize(uint32_t value) {
  return static_cast<size_t>(std::bit_width(value | 1) + 6) / 7;
}

char* PutVarint(uint32_t value, char* to) {
  while (value >= 0x80) {
    *to++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *to++ = static_cast<char>(value);
  return to;
}

const char* GetVarint(const char* from, uint32_t* value) {
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
char* PutFixed(T value, char* to) {
  std::memcpy(to, &value, sizeof(value));
  return to + sizeof(value);
}

template <typename T>
T GetFixed(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

uint32_t KeyWord(const Record& record, bool narrow) {
  return static_cast<uint32_t>(record.key.size()) << kFlagBits |
         (record.own_ttl ? kOwnTtl : 0) | (narrow ? 0 : kWide);
}

}  // namespace

size_t EncodedSize(const Record& record, const RecordBase& base) {
  const bool narrow = IsNarrow(record, base);
  return VarintSize(KeyWord(record, narrow)) +
         VarintSize(static_cast<uint32_t>(record.value.size())) +
         (narrow ? kNarrowBytes : kWideBytes) + record.key.size() +
         record.value.size();
}

void EncodeRecord(const Record& record, const RecordBase& base, char* to) {
  const bool narrow = IsNarrow(record, base);
  to = PutVarint(KeyWord(record, narrow), to);
  to = PutVarint(static_cast<uint32_t>(record.value.size()), to);
  if (narrow) {
    to = PutFixed(static_cast<int32_t>(record.count - base.count), to);
    to = PutFixed(static_cast<int32_t>(record.put_us - base.put_us), to);
  } else {
    to = PutFixed(record.count, to);
    to = PutFixed(record.put_us, to);
    to = PutFixed(record.ttl_us, to);
  }
  // A view of nothing may be null, which memcpy and memmove must not be given.
  // A record that is rewritten in place may be its own source: memmove.
  if (!record.key.empty())
    std::memmove(to, record.key.data(), record.key.size());
  to += record.key.size();
  if (!record.value.empty()) {
    std::memmove(to, record.value.data(), record.value.size());
  }
}

Record DecodeRecord(const char* from, const RecordBase& base, size_t* size) {
  Record record;
  const char* at = from;
  uint32_t key_word;
  uint32_t value_size;
  at = GetVarint(at, &key_word);
  at = GetVarint(at, &value_size);
  record.own_ttl = (key_word & kOwnTtl) != 0;
  if ((key_word & kWide) == 0) {
    record.count = base.count + static_cast<int64_t>(GetFixed<int32_t>(at));
    record.put_us = base.put_us + GetFixed<int32_t>(at + sizeof(int32_t));
    record.ttl_us = base.ttl_us;
    at += kNarrowBytes;
  } else {
    record.count = GetFixed<uint64_t>(at);
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

absl::string_view DecodeKey(const char* from) {
  uint32_t key_word;
  uint32_t value_size;
  const char* at = GetVarint(from, &key_word);
  at = GetVarint(at, &value_size);
  at += (key_word & kWide) == 0 ? kNarrowBytes : kWideBytes;
  return absl::string_view(at, key_word >> kFlagBits);
}

}  // namespace timecache

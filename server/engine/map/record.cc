#include "server/engine/map/record.h"

#include <bit>
#include <cstring>
#include <limits>

namespace timecache::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "records are copied as they lie in memory");

using record_internal::GetVarint;
using record_internal::kDeadNarrow;
using record_internal::kDeadWide;
using record_internal::kFlagBits;
using record_internal::kNarrowBytes;
using record_internal::kOwnTtl;
using record_internal::kWide;
using record_internal::kWideBytes;

bool Fits32(int64_t difference) {
  return difference >= std::numeric_limits<int32_t>::min() &&
         difference <= std::numeric_limits<int32_t>::max();
}

bool IsNarrow(const Record& record, const RecordBase& base) {
  const auto version = static_cast<int64_t>(record.version - base.version);
  return record.ttl_us == base.ttl_us && Fits32(version) &&
         version != kDeadNarrow && Fits32(record.put_us - base.put_us);
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

template <typename T>
char* PutFixed(T value, char* to) {
  std::memcpy(to, &value, sizeof(value));
  return to + sizeof(value);
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

void MarkRecordDead(char* record) {
  uint32_t key_word;
  uint32_t value_size;
  const char* at = GetVarint(GetVarint(record, &key_word), &value_size);
  char* const version = record + (at - record);
  if ((key_word & kWide) == 0) {
    PutFixed(kDeadNarrow, version);
  } else {
    PutFixed(kDeadWide, version);
  }
}

void EncodeRecord(const Record& record, const RecordBase& base, char* to) {
  const bool narrow = IsNarrow(record, base);
  to = PutVarint(KeyWord(record, narrow), to);
  to = PutVarint(static_cast<uint32_t>(record.value.size()), to);
  if (narrow) {
    to = PutFixed(static_cast<int32_t>(record.version - base.version), to);
    to = PutFixed(static_cast<int32_t>(record.put_us - base.put_us), to);
  } else {
    to = PutFixed(record.version, to);
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

}  // namespace timecache::server

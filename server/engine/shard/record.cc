#include "server/engine/shard/record.h"

#include <bit>
#include <cstring>
#include <limits>

namespace timecache::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "records are copied as they lie in memory");

using record_internal::kCapacityBytes;
using record_internal::kDeadNarrow;
using record_internal::kDeadWide;
using record_internal::kFlagBits;
using record_internal::kGrowable;
using record_internal::kNarrowBytes;
using record_internal::kOwnTtl;
using record_internal::kParts;
using record_internal::kWide;
using record_internal::kWideBytes;

bool Fits32(int64_t difference) {
  return difference >= std::numeric_limits<int32_t>::min() &&
         difference <= std::numeric_limits<int32_t>::max();
}

bool IsNarrow(const Record& record, const RecordBase& base) {
  const auto version = static_cast<int64_t>(record.version - base.version);
  return record.ttl_us == base.ttl_us && Fits32(version) &&
         version != kDeadNarrow && Fits32(record.put_us - base.put_us) &&
         !record.parts && record.capacity == 0;
}

// Room for any length that a value may have while it grows.
constexpr size_t kLongSizeBytes = 4;

char* PutLongSize(uint32_t value, char* to) {
  for (size_t i = 1; i < kLongSizeBytes; ++i) {
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

// A view of nothing may be null, which memmove must not be given. A record that
// is rewritten in place may be its own source, and then mostly lies there.
char* PutBytes(absl::string_view bytes, char* to) {
  if (!bytes.empty() && bytes.data() != to) {
    std::memmove(to, bytes.data(), bytes.size());
  }
  return to + bytes.size();
}

uint32_t KeyWord(const Record& record, bool narrow) {
  return static_cast<uint32_t>(record.key.size()) << kFlagBits |
         (record.own_ttl ? kOwnTtl : 0) | (narrow ? 0 : kWide);
}

// Of a wide record, what stands before its key.
char* PutWideHeader(const Record& record, char* to) {
  const auto value_size = static_cast<uint32_t>(record.value.size());
  const bool growable = record.capacity != 0;
  to = PutVarint(KeyWord(record, /*narrow=*/false), to);
  to = growable ? PutLongSize(value_size, to) : PutVarint(value_size, to);
  to = PutFixed(record.version, to);
  to = PutFixed(record.put_us, to);
  to = PutFixed(record.ttl_us, to);
  const auto flags = static_cast<uint8_t>((growable ? kGrowable : 0) |
                                          (record.parts ? kParts : 0));
  to = PutFixed(flags, to);
  return growable ? PutFixed(record.capacity, to) : to;
}

}  // namespace

size_t EncodedSize(const Record& record, const RecordBase& base) {
  const bool narrow = IsNarrow(record, base);
  const size_t key_bytes =
      VarintSize(KeyWord(record, narrow)) + record.key.size();
  if (record.capacity != 0) {
    return key_bytes + kLongSizeBytes + kWideBytes + kCapacityBytes +
           record.capacity;
  }
  return key_bytes + VarintSize(static_cast<uint32_t>(record.value.size())) +
         (narrow ? kNarrowBytes : kWideBytes) + record.value.size();
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
  if (IsNarrow(record, base)) {
    to = PutVarint(KeyWord(record, /*narrow=*/true), to);
    to = PutVarint(static_cast<uint32_t>(record.value.size()), to);
    to = PutFixed(static_cast<int32_t>(record.version - base.version), to);
    to = PutFixed(static_cast<int32_t>(record.put_us - base.put_us), to);
  } else {
    to = PutWideHeader(record, to);
  }
  to = PutBytes(record.key, to);
  PutBytes(record.value, to);
}

void ExtendRecord(Record record, absl::string_view more, char* at) {
  const char* const end = record.value.data() + record.value.size();
  if (!more.empty()) std::memcpy(at + (end - at), more.data(), more.size());
  record.value =
      absl::string_view(record.value.data(), record.value.size() + more.size());
  PutWideHeader(record, at);
}

}  // namespace timecache::server

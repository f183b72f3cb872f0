#include "server/engine/shard/record.h"

#include <bit>
#include <cstring>
#include <limits>

#include "absl/base/attributes.h"

namespace timecache::server {
namespace {

static_assert(std::endian::native == std::endian::little,
              "records are copied as they lie in memory");

using record_internal::kAgeBytes;
using record_internal::kCapacityBytes;
using record_internal::kCreatedBefore;
using record_internal::kDeadNarrow;
using record_internal::kDeadWide;
using record_internal::kFormBits;
using record_internal::kFormMask;
using record_internal::kGrowable;
using record_internal::kIndexed;
using record_internal::kMore;
using record_internal::kNarrowBytes;
using record_internal::kOtherLife;
using record_internal::kOtherOwn;
using record_internal::kOwn;
using record_internal::kOwnIsLife;
using record_internal::kParts;
using record_internal::kPlain;
using record_internal::kTraced;
using record_internal::kWide;
using record_internal::kWideBytes;

// In place of kCreatedBefore: what nine years have no room for, or a time that
// lies ahead.
constexpr uint8_t kCreatedFar = 64;
constexpr int kAgeBits = 8 * kAgeBytes;

bool Fits32(int64_t difference) {
  return difference >= std::numeric_limits<int32_t>::min() &&
         difference <= std::numeric_limits<int32_t>::max();
}

int64_t WrappingMinus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) -
                              static_cast<uint64_t>(b));
}

uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}

int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

// What a record takes against a base, besides key, value and the former's size.
struct Header {
  Header(const Record& record, const RecordBase& base) {
    const auto version = static_cast<int64_t>(record.version - base.version);
    const bool narrow = Fits32(version) && version != kDeadNarrow &&
                        Fits32(WrappingMinus(record.put_us, base.put_us));
    if (record.capacity != 0) flags |= kGrowable;
    if (record.parts) {
      flags |= record.index.empty() ? kParts : kParts | kIndexed;
    }
    if (record.life_us != base.life_us) flags |= kOtherLife;
    if (record.trace != nullptr) [[unlikely]] {
      flags |= kTraced;
    } else if (record.own_ttl_us != 0) {
      flags |= record.own_ttl_us == record.life_us ? kOwnIsLife : kOtherOwn;
    }
    if (record.create_us != record.put_us) {
      flags |= Age(record) >> kAgeBits == 0 ? kCreatedBefore : kCreatedFar;
    }
    form = !narrow               ? kWide
           : flags == 0          ? kPlain
           : flags == kOwnIsLife ? kOwn
                                 : kMore;
  }
  bool has_flags() const { return form == kWide || form == kMore; }
  bool has(uint8_t flag) const { return (flags & flag) != 0; }

  // Of all behind the value's size and before the key.
  size_t Size(const Record& record) const {
    size_t size = form == kWide ? kWideBytes : kNarrowBytes;
    if (has_flags()) ++size;
    if (has(kGrowable)) size += kCapacityBytes;
    if (has(kOtherLife)) size += VarintSize(ZigZag(record.life_us));
    if (has(kOtherOwn)) {
      size += VarintSize(static_cast<uint64_t>(record.own_ttl_us));
      if (record.trace != nullptr) size += kTraceBytes;
    }
    if (has(kCreatedBefore)) size += kAgeBytes;
    if (has(kCreatedFar)) size += sizeof(uint64_t);
    if (has(kIndexed)) ++size;
    return size;
  }
  static uint64_t Age(const Record& record) {
    return static_cast<uint64_t>(
        WrappingMinus(record.put_us, record.create_us));
  }

  uint8_t flags = 0;
  uint32_t form = kPlain;
};

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

uint32_t KeyWord(const Record& record, const Header& header) {
  return static_cast<uint32_t>(record.key.size()) << kFormBits | header.form;
}

// Of an index: a number, and as many as a power of two.
constexpr size_t kIndexNumberBytes = sizeof(uint32_t);

uint8_t IndexBits(const Record& record) {
  return static_cast<uint8_t>(
      std::countr_zero(record.index.size() / kIndexNumberBytes - 1));
}

// What stands before the key. The traceparent is not where it is written.
char* PutNumbers(const Record& record, const Header& header,
                 const RecordBase& base, char* to) {
  const auto value_size = static_cast<uint32_t>(record.value.size());
  to = PutVarint(KeyWord(record, header), to);
  to = header.has(kGrowable) ? PutLongSize(value_size, to)
                             : PutVarint(value_size, to);
  if (header.form == kWide) {
    to = PutFixed(record.version, to);
    to = PutFixed(record.put_us, to);
  } else {
    to = PutFixed(static_cast<int32_t>(record.version - base.version), to);
    to = PutFixed(static_cast<int32_t>(record.put_us - base.put_us), to);
  }
  if (!header.has_flags()) return to;
  to = PutFixed(header.flags, to);
  if (header.has(kGrowable)) to = PutFixed(record.capacity, to);
  if (header.has(kOtherLife)) to = PutVarint(ZigZag(record.life_us), to);
  if (header.has(kOtherOwn)) {
    to = PutVarint(static_cast<uint64_t>(record.own_ttl_us), to);
    if (record.trace != nullptr) {
      std::memcpy(to, record.trace, kTraceBytes);
      to += kTraceBytes;
    }
  }
  const uint64_t age = Header::Age(record);
  if (header.has(kCreatedBefore)) {
    std::memcpy(to, &age, kAgeBytes);
    to += kAgeBytes;
  }
  if (header.has(kCreatedFar)) to = PutFixed(age, to);
  return header.has(kIndexed) ? PutFixed(IndexBits(record), to) : to;
}

ABSL_ATTRIBUTE_NOINLINE char* PutTracedNumbers(Record record,
                                               const Header& header,
                                               const RecordBase& base,
                                               char* to) {
  char trace[kTraceBytes];
  std::memcpy(trace, record.trace, sizeof(trace));
  record.trace = trace;
  return PutNumbers(record, header, base, to);
}

// A record that is written where it lies may take its traceparent along.
char* PutHeader(const Record& record, const Header& header,
                const RecordBase& base, char* to) {
  return record.trace == nullptr ? PutNumbers(record, header, base, to)
                                 : PutTracedNumbers(record, header, base, to);
}

inline size_t SizeUnder(const Header& header, const Record& record) {
  const size_t fixed = VarintSize(KeyWord(record, header)) +
                       header.Size(record) + record.key.size() +
                       record.index.size();
  return record.capacity != 0
             ? fixed + kLongSizeBytes + record.capacity
             : fixed + VarintSize(record.value.size()) + record.value.size();
}

inline void PutWhole(const Record& record, const Header& header,
                     const RecordBase& base, char* to) {
  to = PutHeader(record, header, base, to);
  to = PutBytes(record.key, to);
  char* const end = PutBytes(record.value, to);
  PutBytes(record.index, record.capacity != 0 ? to + record.capacity : end);
}

}  // namespace

const char* record_internal::GetMore(const char* at, Record* record,
                                     size_t* index_bytes) {
  const auto flags = static_cast<uint8_t>(*at++);
  record->parts = (flags & kParts) != 0;
  if ((flags & kGrowable) != 0) {
    record->capacity = GetFixed<uint32_t>(at);
    at += kCapacityBytes;
  }
  uint64_t number;
  if ((flags & kOtherLife) != 0) {
    at = GetVarint(at, &number);
    record->life_us = UnZigZag(number);
  }
  if ((flags & kOwnIsLife) != 0) record->own_ttl_us = record->life_us;
  if ((flags & kOtherOwn) != 0) {
    at = GetVarint(at, &number);
    record->own_ttl_us = static_cast<int64_t>(number);
    if ((flags & kOwnIsLife) != 0) {
      record->trace = at;
      at += kTraceBytes;
    }
  }
  if ((flags & (kCreatedBefore | kCreatedFar)) != 0) {
    const size_t bytes =
        (flags & kCreatedFar) != 0 ? sizeof(number) : kAgeBytes;
    number = 0;
    std::memcpy(&number, at, bytes);
    record->create_us =
        WrappingMinus(record->put_us, static_cast<int64_t>(number));
    at += bytes;
  }
  if ((flags & kIndexed) != 0) {
    *index_bytes = kIndexNumberBytes * (1 + (size_t{1} << *at++));
  }
  return at;
}

size_t EncodedSize(const Record& record, const RecordBase& base) {
  return SizeUnder(Header(record, base), record);
}

void MarkRecordDead(char* record) {
  uint32_t key_word;
  uint32_t value_size;
  const char* at = GetVarint(GetVarint(record, &key_word), &value_size);
  char* const version = record + (at - record);
  if ((key_word & kFormMask) != kWide) {
    PutFixed(kDeadNarrow, version);
  } else {
    PutFixed(kDeadWide, version);
  }
}

void EncodeRecord(const Record& record, const RecordBase& base, char* to) {
  PutWhole(record, Header(record, base), base, to);
}

size_t EncodeRecordWithin(const Record& record, const RecordBase& base,
                          size_t least, size_t most, char* to) {
  const Header header(record, base);
  const size_t size = SizeUnder(header, record);
  if (size < least || size > most) return 0;
  PutWhole(record, header, base, to);
  return size;
}

void ExtendRecord(Record record, const RecordBase& base, absl::string_view more,
                  char* at) {
  const char* const end = record.value.data() + record.value.size();
  if (!more.empty()) std::memcpy(at + (end - at), more.data(), more.size());
  record.value =
      absl::string_view(record.value.data(), record.value.size() + more.size());
  PutHeader(record, Header(record, base), base, at);
}

}  // namespace timecache::server

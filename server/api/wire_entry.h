// Entries in protobuf's wire format, as the generated classes write them: for
// answers and pages of scans, without objects.

#ifndef TIMECACHED_SERVER_API_WIRE_ENTRY_H_
#define TIMECACHED_SERVER_API_WIRE_ENTRY_H_

#include <cstddef>
#include <cstdint>

#include "absl/base/attributes.h"
#include "server/base/wire_time.h"
#include "server/engine/store/scan.h"
#include "server/engine/store/traceparent.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server::wire {

// The most bytes of an entry beside its key and value, and of its traceparent.
inline constexpr size_t kMaxEntryBytes = 128;
inline constexpr size_t kTraceFieldBytes = kTraceTextBytes + 2;

// A v1.Entry as a field: without its key, if that is empty, and with the size
// of its value in place of it, if that is `omitted`. Inline whatever the compiler
// thinks of it, as WriteResponse is: a batch has many, and most callers know
// `omitted`.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline char* WriteEntry(uint8_t tag,
                                                     const EntryView& entry,
                                                     bool omitted, char* at) {
  using v1::Entry;
  constexpr uint8_t kKey = WireTag(Entry::kKeyFieldNumber, kLengthDelimited);
  constexpr uint8_t kValue =
      WireTag(Entry::kValueFieldNumber, kLengthDelimited);
  constexpr uint8_t kVersion = WireTag(Entry::kVersionFieldNumber, kVarint);
  constexpr uint8_t kPutTime =
      WireTag(Entry::kPutTimeFieldNumber, kLengthDelimited);
  constexpr uint8_t kDeadline =
      WireTag(Entry::kDeadlineFieldNumber, kLengthDelimited);
  constexpr uint8_t kOmitted =
      WireTag(Entry::kOmittedValueBytesFieldNumber, kVarint);
  constexpr uint8_t kParts =
      WireTag(Entry::kPartsFieldNumber, kLengthDelimited);
  constexpr uint8_t kCreateTime =
      WireTag(Entry::kCreateTimeFieldNumber, kLengthDelimited);
  constexpr uint8_t kOwnTtl =
      WireTag(Entry::kOwnTtlFieldNumber, kLengthDelimited);
  constexpr uint8_t kTrace =
      WireTag(Entry::kTraceparentFieldNumber, kLengthDelimited);
  const char* const end = at;
  if (!entry.trace.empty()) {
    at -= kTraceTextBytes;
    FormatTrace(entry.trace, at);
    at = WriteHead(kTrace, at + kTraceTextBytes, at);
  }
  const TimeParts create = PartsOfTime(entry.create_us);
  const TimeParts deadline = PartsOfTime(entry.deadline_us);
  const TimeParts put = PartsOfTime(entry.put_us);
  if (entry.own_ttl_us != 0) at = WriteTime(kOwnTtl, entry.own_ttl_us, at);
  Varint nanos = NanosOf(create);
  at = WriteTime(kCreateTime, create, nanos, at);
  if (entry.parts && !omitted) at = WriteBytes(kParts, entry.value, at);
  if (omitted) at = WriteNumber(kOmitted, entry.value.size(), at);
  // As a TTL is mostly whole seconds, they are mostly the same.
  if (deadline.nanos != create.nanos) nanos = NanosOf(deadline);
  at = WriteTime(kDeadline, deadline, nanos, at);
  if (put.nanos != deadline.nanos) nanos = NanosOf(put);
  at = WriteTime(kPutTime, put, nanos, at);
  at = WriteNumber(kVersion, entry.version, at);
  if (!entry.parts && !omitted) at = WriteBytes(kValue, entry.value, at);
  return WriteHead(tag, end, WriteBytes(kKey, entry.key, at));
}

}  // namespace timecache::server::wire

#endif  // TIMECACHED_SERVER_API_WIRE_ENTRY_H_

#include "server/rpc/data/batch_response.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"
#include "server/api/proto_time.h"
#include "server/api/status.h"
#include "server/base/check.h"
#include "server/base/wire_format.h"

namespace timecache::server {
namespace {

using google::protobuf::Timestamp;

// A message is written from its end to its beginning: so the length of what it
// holds is known where it must be written, and nothing is measured before.
// Fields are written in reverse, too. Each of these functions writes what ends
// at `at`, and returns where it begins.

uint8_t* WriteByte(uint8_t byte, uint8_t* at) {
  *--at = byte;
  return at;
}

// The eight groups of seven bits of a number below 2^56, each in a byte of its
// own: parts the number into halves of four groups, quarters of two, and bytes.
// To add an upper part 2^k - 1 times is to shift it up by k.
uint64_t Spread(uint64_t value) {
  value += (value & 0x00fffffff0000000) * 15;
  value += (value & 0x0fffc0000fffc000) * 3;
  value += value & 0x3f803f803f803f80;
  return value;
}

// The varint of a number below 2^56, without a loop: the last of eight bytes,
// behind `unused` ones that mean nothing.
struct Varint {
  explicit Varint(uint64_t value) {
    const uint64_t groups = Spread(value);
    unused = static_cast<size_t>(std::countl_zero(groups | 1)) / 8;
    // All bytes but the last say that another follows.
    bytes = groups << (8 * unused) | 0x0080808080808080;
  }

  uint64_t bytes;
  size_t unused;
};
static_assert(std::endian::native == std::endian::little,
              "the lowest bits of a number stand first");

// The unused bytes are written, too, where something else will be: there must
// be room for them.
constexpr size_t kSlack = sizeof Varint::bytes;

uint8_t* WriteVarint(Varint varint, uint8_t* at) {
  at -= sizeof varint.bytes;
  std::memcpy(at, &varint.bytes, sizeof varint.bytes);
  return at + varint.unused;
}

ABSL_ATTRIBUTE_NOINLINE uint8_t* WriteAnyVarint(uint64_t value, uint8_t* at) {
  using google::protobuf::io::CodedOutputStream;
  at -= CodedOutputStream::VarintSize64(value);
  CodedOutputStream::WriteVarint64ToArray(value, at);
  return at;
}

// The functions that are called in more than one place and do little are
// inline: what lies in registers would be saved and restored around a call.

// Of a field with the default value nothing is written.
inline uint8_t* WriteNumber(uint8_t tag, uint64_t value, uint8_t* at) {
  if (value == 0) return at;
  at = value >> 56 == 0 ? WriteVarint(Varint(value), at)
                        : WriteAnyVarint(value, at);
  return WriteByte(tag, at);
}

// Mostly one byte or two.
uint8_t* WriteLength(size_t length, uint8_t* at) {
  if (length < 0x80) return WriteByte(static_cast<uint8_t>(length), at);
  if (length >= 0x4000) return WriteAnyVarint(length, at);
  at = WriteByte(static_cast<uint8_t>(length >> 7), at);
  return WriteByte(static_cast<uint8_t>(length | 0x80), at);
}

// Closes a message that was written from `end` to `at`.
uint8_t* WriteHead(uint8_t tag, const uint8_t* end, uint8_t* at) {
  return WriteByte(tag, WriteLength(static_cast<size_t>(end - at), at));
}

uint8_t* WriteRaw(absl::string_view bytes, uint8_t* at) {
  at -= bytes.size();
  // A view of nothing may be null, which memcpy must not be given.
  if (!bytes.empty()) std::memcpy(at, bytes.data(), bytes.size());
  return at;
}

uint8_t* WriteBytes(uint8_t tag, absl::string_view value, uint8_t* at) {
  if (value.empty()) return at;
  return WriteHead(tag, at, WriteRaw(value, at));
}

// The most that heads, version and flag of an answer take.
constexpr size_t kMaxAnswerBytes = 32;
// The same of an entry, with its times and without its value.
constexpr size_t kMaxEntryBytes = 112;

inline uint8_t* WriteSeconds(int64_t seconds, uint8_t* at) {
  constexpr uint8_t kTag = WireTag(Timestamp::kSecondsFieldNumber, kVarint);
  const auto value = static_cast<uint64_t>(seconds);
  const uint64_t last = value >> 28;
  if (last == 0 || last >= 0x80) return WriteNumber(kTag, value, at);
  // Five bytes, from 1978 to 3058: four groups, and what is left in the last.
  auto groups = static_cast<uint32_t>(Spread(value & 0x0fffffff)) | 0x80808080;
  at = WriteByte(static_cast<uint8_t>(last), at) - sizeof groups;
  std::memcpy(at, &groups, sizeof groups);
  return WriteByte(kTag, at);
}

// A Timestamp or a positive Duration, its nanos given as a varint, too.
inline uint8_t* WriteTime(uint8_t tag, TimeParts time, Varint nanos,
                          uint8_t* at) {
  const uint8_t* const end = at;
  if (time.nanos != 0) {
    at = WriteByte(WireTag(Timestamp::kNanosFieldNumber, kVarint),
                   WriteVarint(nanos, at));
  }
  at = WriteSeconds(time.seconds, at);
  const auto length = static_cast<uint8_t>(end - at);
  return WriteByte(tag, WriteByte(length, at));
}

Varint NanosOf(TimeParts time) {
  return Varint(static_cast<uint32_t>(time.nanos));
}

// A v1.Entry without its key.
uint8_t* WriteEntry(uint8_t tag, const Entry& entry, uint8_t* at) {
  constexpr uint8_t kDeadline =
      WireTag(v1::Entry::kDeadlineFieldNumber, kLengthDelimited);
  constexpr uint8_t kPutTime =
      WireTag(v1::Entry::kPutTimeFieldNumber, kLengthDelimited);
  constexpr uint8_t kCreateTime =
      WireTag(v1::Entry::kCreateTimeFieldNumber, kLengthDelimited);
  constexpr uint8_t kOwnTtl =
      WireTag(v1::Entry::kOwnTtlFieldNumber, kLengthDelimited);
  constexpr uint8_t kVersion = WireTag(v1::Entry::kVersionFieldNumber, kVarint);
  constexpr uint8_t kValue =
      WireTag(v1::Entry::kValueFieldNumber, kLengthDelimited);
  constexpr uint8_t kParts =
      WireTag(v1::Entry::kPartsFieldNumber, kLengthDelimited);
  const uint8_t* const end = at;
  const TimeParts create = PartsOfTime(entry.create_us);
  const TimeParts deadline = PartsOfTime(entry.deadline_us);
  const TimeParts put = PartsOfTime(entry.put_us);
  if (entry.own_ttl_us != 0) {
    const TimeParts own_ttl = PartsOfTime(entry.own_ttl_us);
    at = WriteTime(kOwnTtl, own_ttl, NanosOf(own_ttl), at);
  }
  Varint nanos = NanosOf(create);
  at = WriteTime(kCreateTime, create, nanos, at);
  if (entry.parts) at = WriteBytes(kParts, entry.value, at);
  // As a TTL is mostly whole seconds, they are mostly the same.
  if (deadline.nanos != create.nanos) nanos = NanosOf(deadline);
  at = WriteTime(kDeadline, deadline, nanos, at);
  if (put.nanos != deadline.nanos) nanos = NanosOf(put);
  at = WriteTime(kPutTime, put, nanos, at);
  at = WriteNumber(kVersion, entry.version, at);
  if (!entry.parts) at = WriteBytes(kValue, entry.value, at);
  return WriteHead(tag, end, at);
}

// The tags of the fields that a kind of operation returns, 0 for others: of its
// response in OperationResult, and of the parts of a Result in this response.
// There they stand in this order.
struct AnswerTags {
  uint8_t response;
  uint8_t found;
  uint8_t version;
  uint8_t entry;
};

using Response = v1::OperationResult;
// In the order of OpKind.
constexpr AnswerTags kAnswerTags[] = {
    {WireTag(Response::kPutFieldNumber, kLengthDelimited), 0,
     WireTag(v1::PutResponse::kVersionFieldNumber, kVarint),
     WireTag(v1::PutResponse::kPreviousFieldNumber, kLengthDelimited)},
    {WireTag(Response::kGetFieldNumber, kLengthDelimited), 0, 0,
     WireTag(v1::GetResponse::kEntryFieldNumber, kLengthDelimited)},
    {WireTag(Response::kRemoveFieldNumber, kLengthDelimited),
     WireTag(v1::RemoveResponse::kRemovedFieldNumber, kVarint), 0,
     WireTag(v1::RemoveResponse::kPreviousFieldNumber, kLengthDelimited)},
    {WireTag(Response::kContainsFieldNumber, kLengthDelimited),
     WireTag(v1::ContainsResponse::kContainsFieldNumber, kVarint), 0, 0},
    {WireTag(Response::kTouchFieldNumber, kLengthDelimited),
     WireTag(v1::TouchResponse::kTouchedFieldNumber, kVarint),
     WireTag(v1::TouchResponse::kVersionFieldNumber, kVarint), 0},
};
static_assert(OpKind::kPut == OpKind{0} && OpKind::kGet == OpKind{1} &&
              OpKind::kRemove == OpKind{2} && OpKind::kContains == OpKind{3} &&
              OpKind::kTouch == OpKind{4});

uint8_t* WriteFlag(int field, bool value, uint8_t* at) {
  return value ? WriteByte(WireTag(field, kVarint), WriteByte(1, at)) : at;
}

uint64_t ZigZag(int64_t number) {
  return static_cast<uint64_t>(number) << 1 ^
         static_cast<uint64_t>(number >> 63);
}

// For the operations that compute a new value from the old one.
uint8_t* WriteChangeResponse(OpKind kind, const Result& result, uint8_t* at) {
  using Append = v1::AppendResponse;
  using Combine = v1::CombineResponse;
  using Gather = v1::GatherResponse;
  const auto number = static_cast<uint64_t>(result.number);
  const uint8_t* const end = at;
  switch (kind) {
    case OpKind::kAppend:
      at = WriteFlag(Append::kCreatedFieldNumber, !result.found, at);
      at = WriteNumber(WireTag(Append::kValueBytesFieldNumber, kVarint), number,
                       at);
      at = WriteNumber(WireTag(Append::kVersionFieldNumber, kVarint),
                       result.version, at);
      return WriteHead(WireTag(Response::kAppendFieldNumber, kLengthDelimited),
                       end, at);
    case OpKind::kCombine:
      at = WriteFlag(Combine::kRemovedFieldNumber, result.removed, at);
      at = WriteFlag(Combine::kCreatedFieldNumber,
                     !result.found && !result.removed, at);
      at = WriteNumber(WireTag(Combine::kVersionFieldNumber, kVarint),
                       result.version, at);
      at = WriteNumber(WireTag(Combine::kResultFieldNumber, kVarint),
                       ZigZag(result.number), at);
      return WriteHead(WireTag(Response::kCombineFieldNumber, kLengthDelimited),
                       end, at);
    default:
      at = WriteFlag(Gather::kDuplicateFieldNumber, result.duplicate, at);
      at = WriteNumber(WireTag(Gather::kCountFieldNumber, kVarint),
                       static_cast<uint32_t>(number), at);
      at = WriteNumber(WireTag(Gather::kVersionFieldNumber, kVarint),
                       result.version, at);
      if (result.has_entry) {
        at = WriteBytes(WireTag(Gather::kPartsFieldNumber, kLengthDelimited),
                        result.entry.value, at);
      }
      return WriteHead(WireTag(Response::kGatherFieldNumber, kLengthDelimited),
                       end, at);
  }
}

uint8_t* WriteResponse(OpKind kind, const Result& result, uint8_t* at) {
  if (kind > OpKind::kTouch) return WriteChangeResponse(kind, result, at);
  const AnswerTags& tags = kAnswerTags[static_cast<size_t>(kind)];
  const uint8_t* const end = at;
  if (tags.entry != 0 && result.has_entry) {
    at = WriteEntry(tags.entry, result.entry, at);
  }
  if (tags.version != 0) at = WriteNumber(tags.version, result.version, at);
  if (tags.found != 0 && result.found) {
    at = WriteByte(tags.found, WriteByte(1, at));
  }
  return WriteHead(tags.response, end, at);
}

// A google.rpc.Status, as gRPC would carry it.
std::string ErrorBytes(const absl::Status& status) {
  return ToGrpcStatus(status).error_details();
}

uint8_t* WriteError(absl::string_view bytes, uint8_t* at) {
  return WriteHead(
      WireTag(v1::OperationResult::kErrorFieldNumber, kLengthDelimited), at,
      WriteRaw(bytes, at));
}

}  // namespace

grpc::ByteBuffer EncodeResponse(const BatchRequest& request,
                                absl::Span<const Result> results,
                                RefusalCount* refused_by_limits,
                                ResponseAccount* account, int64_t small_bytes) {
  const absl::Span<const Operation> operations = request.operations();
  absl::Span<const BatchRequest::Refused> refused = request.refused();
  TIMECACHED_CHECK(operations.size() == results.size());
  const size_t count = operations.size() + refused.size();
  // Errors are rare, and their length is known only once they are written.
  std::vector<std::string> errors;
  size_t most = count * kMaxAnswerBytes;
  for (const Result& result : results) {
    if (!result.status.ok()) {
      most += errors.emplace_back(ErrorBytes(result.status)).size();
      if (refused_by_limits != nullptr) refused_by_limits->Add(result.status);
    } else if (result.has_entry) {
      most += kMaxEntryBytes + result.entry.value.size();
    }
  }
  std::vector<std::string> refusals;
  for (const BatchRequest::Refused& each : refused) {
    most += refusals.emplace_back(ErrorBytes(each.status)).size();
  }

  constexpr uint8_t kResults =
      WireTag(v1::ExecuteResponse::kResultsFieldNumber, kLengthDelimited);
  grpc::Slice slice = NewSlice(account, kSlack + most, small_bytes);
  // No other thread has it yet.
  auto* at = const_cast<uint8_t*>(slice.end());
  const Operation* operation = operations.end();
  const Result* result = results.end();
  for (size_t i = count; i-- > 0;) {
    const uint8_t* const end = at;
    if (!refused.empty() && refused.back().index == i) {
      at = WriteError(refusals.back(), at);
      refusals.pop_back();
      refused.remove_suffix(1);
    } else if (--operation, (--result)->status.ok()) {
      at = WriteResponse(operation->kind, *result, at);
    } else {
      at = WriteError(errors.back(), at);
      errors.pop_back();
    }
    at = WriteHead(kResults, end, at);
  }
  TIMECACHED_CHECK(at >= slice.begin() + kSlack && result == results.begin());
  slice = slice.sub(static_cast<size_t>(at - slice.begin()), slice.size());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace timecache::server

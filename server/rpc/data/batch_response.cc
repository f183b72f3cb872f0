#include "server/rpc/data/batch_response.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/attributes.h"
#include "absl/strings/string_view.h"
#include "server/api/status.h"
#include "server/api/wire_entry.h"
#include "server/base/check.h"
#include "server/base/wire_writer.h"

namespace timecache::server {
namespace {

using wire::WriteByte;
using wire::WriteBytes;
using wire::WriteHead;
using wire::WriteNumber;

// The most that heads, version and flag of an answer take.
constexpr size_t kMaxAnswerBytes = 32;

// The tags of the fields that a kind of operation returns, 0 for others: of its
// response in OperationResult, and of the parts of a Result in this response.
// There they stand in this order. Of what Append and the kinds behind it return:
// see WriteChange.
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
    {WireTag(Response::kAppendFieldNumber, kLengthDelimited), 0, 0, 0},
    {WireTag(Response::kCombineFieldNumber, kLengthDelimited), 0, 0, 0},
    {WireTag(Response::kGatherFieldNumber, kLengthDelimited), 0, 0, 0},
};
static_assert(OpKind::kPut == OpKind{0} && OpKind::kGet == OpKind{1} &&
              OpKind::kRemove == OpKind{2} && OpKind::kContains == OpKind{3} &&
              OpKind::kTouch == OpKind{4} && OpKind::kAppend == OpKind{5} &&
              OpKind::kCombine == OpKind{6} && OpKind::kGather == OpKind{7});

char* WriteFlag(int field, bool value, char* at) {
  return value ? WriteByte(WireTag(field, kVarint), WriteByte(1, at)) : at;
}

uint64_t ZigZag(int64_t number) {
  return static_cast<uint64_t>(number) << 1 ^
         static_cast<uint64_t>(number >> 63);
}

// For the operations that compute a new value from the old one.
char* WriteChange(OpKind kind, const Result& result, char* at) {
  using Append = v1::AppendResponse;
  using Combine = v1::CombineResponse;
  using Gather = v1::GatherResponse;
  const auto number = static_cast<uint64_t>(result.number);
  switch (kind) {
    case OpKind::kAppend:
      at = WriteFlag(Append::kCreatedFieldNumber, !result.found, at);
      at = WriteNumber(WireTag(Append::kValueBytesFieldNumber, kVarint), number,
                       at);
      return WriteNumber(WireTag(Append::kVersionFieldNumber, kVarint),
                         result.version, at);
    case OpKind::kCombine:
      at = WriteFlag(Combine::kRemovedFieldNumber, result.removed, at);
      at = WriteFlag(Combine::kCreatedFieldNumber,
                     !result.found && !result.removed, at);
      at = WriteNumber(WireTag(Combine::kVersionFieldNumber, kVarint),
                       result.version, at);
      return WriteNumber(WireTag(Combine::kResultFieldNumber, kVarint),
                         ZigZag(result.number), at);
    default:
      at = WriteFlag(Gather::kDuplicateFieldNumber, result.duplicate, at);
      at = WriteNumber(WireTag(Gather::kCountFieldNumber, kVarint),
                       static_cast<uint32_t>(number), at);
      at = WriteNumber(WireTag(Gather::kVersionFieldNumber, kVarint),
                       result.version, at);
      if (!result.has_entry) return at;
      return WriteBytes(WireTag(Gather::kPartsFieldNumber, kLengthDelimited),
                        result.entry.value, at);
  }
}

// The fields of an operation's response. Its entry has the key, unless that is
// empty.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline char* WriteResponse(OpKind kind,
                                                        absl::string_view key,
                                                        const Result& result,
                                                        char* at) {
  if (kind > OpKind::kTouch) return WriteChange(kind, result, at);
  const AnswerTags& tags = kAnswerTags[static_cast<size_t>(kind)];
  if (tags.entry != 0 && result.has_entry) {
    const Entry& entry = result.entry;
    at = wire::WriteEntry(
        tags.entry,
        {key, entry.value, entry.version, entry.put_us, entry.deadline_us,
         entry.parts, entry.create_us, entry.own_ttl_us},
        /*omitted=*/false, at);
  }
  if (tags.version != 0) at = WriteNumber(tags.version, result.version, at);
  if (tags.found != 0 && result.found) {
    at = WriteByte(tags.found, WriteByte(1, at));
  }
  return at;
}

// The most bytes of that.
size_t MaxResponseBytes(absl::string_view key, const Result& result) {
  return kMaxAnswerBytes +
         (result.has_entry
              ? wire::kMaxEntryBytes + key.size() + result.entry.value.size()
              : 0);
}

// A google.rpc.Status, as gRPC would carry it.
std::string ErrorBytes(const absl::Status& status) {
  return ToGrpcStatus(status).error_details();
}

char* WriteError(absl::string_view bytes, char* at) {
  return WriteHead(
      WireTag(v1::OperationResult::kErrorFieldNumber, kLengthDelimited), at,
      wire::WriteRaw(bytes, at));
}

// No other thread has it yet.
char* EndOf(const grpc::Slice& slice) {
  return reinterpret_cast<char*>(const_cast<uint8_t*>(slice.end()));
}

// What was written from `at` to the end of the slice.
grpc::ByteBuffer Written(const grpc::Slice& slice, const char* at) {
  const auto size = static_cast<size_t>(EndOf(slice) - at);
  TIMECACHED_CHECK(size + wire::kSlack <= slice.size());
  const grpc::Slice written = slice.sub(slice.size() - size, slice.size());
  return grpc::ByteBuffer(&written, 1);
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
  size_t most = refused.size() * kMaxAnswerBytes;
  for (const Result& result : results) {
    if (result.status.ok()) {
      most += MaxResponseBytes("", result);
    } else {
      most += kMaxAnswerBytes +
              errors.emplace_back(ErrorBytes(result.status)).size();
      if (refused_by_limits != nullptr) refused_by_limits->Add(result.status);
    }
  }
  std::vector<std::string> refusals;
  for (const BatchRequest::Refused& each : refused) {
    most += refusals.emplace_back(ErrorBytes(each.status)).size();
  }

  constexpr uint8_t kResults =
      WireTag(v1::ExecuteResponse::kResultsFieldNumber, kLengthDelimited);
  const grpc::Slice slice = NewSlice(account, wire::kSlack + most, small_bytes);
  char* at = EndOf(slice);
  const Operation* operation = operations.end();
  const Result* result = results.end();
  for (size_t i = count; i-- > 0;) {
    const char* const end = at;
    if (!refused.empty() && refused.back().index == i) {
      at = WriteError(refusals.back(), at);
      refusals.pop_back();
      refused.remove_suffix(1);
    } else if (--operation, (--result)->status.ok()) {
      const auto kind = static_cast<size_t>(operation->kind);
      at = WriteHead(kAnswerTags[kind].response, end,
                     WriteResponse(operation->kind, "", *result, at));
    } else {
      at = WriteError(errors.back(), at);
      errors.pop_back();
    }
    at = WriteHead(kResults, end, at);
  }
  TIMECACHED_CHECK(result == results.begin());
  return Written(slice, at);
}

grpc::ByteBuffer ToBytes(const OperationAnswer& answer,
                         ResponseAccount* account) {
  const grpc::Slice slice = NewSlice(
      account, wire::kSlack + MaxResponseBytes(answer.key, *answer.result));
  return Written(slice, WriteResponse(answer.kind, answer.key, *answer.result,
                                      EndOf(slice)));
}

}  // namespace timecache::server

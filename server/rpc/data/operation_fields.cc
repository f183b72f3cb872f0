#include "server/rpc/data/operation_fields.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/api/proto_time.h"
#include "server/base/wire_reader.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {
namespace {

// The one field that may come more than once.
constexpr uint8_t kExpectedName =
    WireTag(v1::GatherRequest::kExpectedNamesFieldNumber, kLengthDelimited);

// Of a field of a request and the kind of its operation, one number to switch
// on.
constexpr int Of(OpKind kind, uint8_t tag) {
  return static_cast<int>(kind) << 8 | tag;
}

// A Duration or a Timestamp: their fields are the same.
bool ReadSecondsAndNanos(absl::string_view bytes, int64_t* seconds,
                         int32_t* nanos) {
  using google::protobuf::Duration;
  using google::protobuf::Timestamp;
  static_assert(int{Duration::kSecondsFieldNumber} ==
                    int{Timestamp::kSecondsFieldNumber} &&
                int{Duration::kNanosFieldNumber} ==
                    int{Timestamp::kNanosFieldNumber});
  uint64_t values[2] = {0, 0};
  uint32_t seen = 0;
  for (WireReader reader(bytes); !reader.done();) {
    uint8_t tag;
    if (!reader.Tag(&tag)) return false;
    uint64_t* value;
    switch (tag) {
      case WireTag(Duration::kSecondsFieldNumber, kVarint):
        value = &values[0];
        break;
      case WireTag(Duration::kNanosFieldNumber, kVarint):
        value = &values[1];
        break;
      default:
        return false;
    }
    const uint32_t bit = uint32_t{1} << (tag >> 3);
    if ((seen & bit) != 0 || !reader.Varint(value)) return false;
    seen |= bit;
  }
  if (values[1] > INT32_MAX) return false;
  *seconds = static_cast<int64_t>(values[0]);
  *nanos = static_cast<int32_t>(values[1]);
  return true;
}

bool ReadDuration(absl::string_view bytes, int64_t* to_us) {
  int64_t seconds;
  int32_t nanos;
  if (!ReadSecondsAndNanos(bytes, &seconds, &nanos)) return false;
  const auto duration_us = DurationToMicros(seconds, nanos, "ttl");
  if (!duration_us.ok()) return false;
  *to_us = *duration_us;
  return true;
}

bool ReadTtl(absl::string_view bytes, Operation* op) {
  op->has_ttl = true;
  return ReadDuration(bytes, &op->ttl_us);
}

bool ReadExpireAt(absl::string_view bytes, Operation* op) {
  int64_t seconds;
  int32_t nanos;
  if (!ReadSecondsAndNanos(bytes, &seconds, &nanos)) return false;
  const auto time_us = TimeToMicros(seconds, nanos, "expire_at");
  if (!time_us.ok()) return false;
  op->has_expire_at = true;
  op->expire_at_us = *time_us;
  return true;
}

// One that is no UTF-8 is for the generated parser to refuse.
bool ReadTrace(WireReader* reader, Operation* op) {
  absl::string_view trace;
  if (!reader->Bytes(&trace)) return false;
  op->SetTrace(trace);
  return std::none_of(trace.begin(), trace.end(),
                      [](char c) { return static_cast<uint8_t>(c) >= 0x80; });
}

int64_t ZigZag(uint64_t number) {
  return static_cast<int64_t>((number >> 1) ^ (~(number & 1) + 1));
}

bool ReadSigned(WireReader* reader, int64_t* value) {
  uint64_t number;
  if (!reader->Varint(&number)) return false;
  *value = ZigZag(number);
  return true;
}

// The expected parts of a Gather, until all are read.
struct Expectation {
  absl::string_view part;
  uint64_t parts = 0;
  std::vector<absl::string_view> names;
  bool keep_first = false;
  int64_t remember_us = 0;
};

// A second condition is not plain, whichever field it is in: the generated
// parser says what two of them mean.
bool SetCondition(Condition condition, Operation* op) {
  if (op->condition != Condition::kNone) return false;
  op->condition = condition;
  return true;
}

bool ReadCondition(WireReader* reader, Operation* op) {
  uint64_t number;
  if (!reader->Varint(&number)) return false;
  switch (number) {
    case v1::PUT_CONDITION_UNSPECIFIED:
      return op->condition == Condition::kNone;
    case v1::PUT_CONDITION_IF_ABSENT:
      return SetCondition(Condition::kIfAbsent, op);
    case v1::PUT_CONDITION_IF_PRESENT:
      return SetCondition(Condition::kIfPresent, op);
    default:
      return false;
  }
}

bool ReadIfVersion(WireReader* reader, Operation* op) {
  return SetCondition(Condition::kIfVersion, op) &&
         reader->Varint(&op->if_version) && op->if_version != 0;
}

// For the operations that compute a new value from the old one.
bool ReadChangeField(OpKind kind, uint8_t tag, WireReader* reader,
                     Operation* op, Expectation* expected) {
  using Append = v1::AppendRequest;
  using Combine = v1::CombineRequest;
  using Gather = v1::GatherRequest;
  absl::string_view bytes;
  switch (Of(kind, tag)) {
    case Of(OpKind::kAppend,
            WireTag(Append::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kCombine,
            WireTag(Combine::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGather,
            WireTag(Gather::kKeyFieldNumber, kLengthDelimited)):
      return reader->Bytes(&op->key);
    case Of(OpKind::kAppend,
            WireTag(Append::kValueFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGather,
            WireTag(Gather::kValueFieldNumber, kLengthDelimited)):
      return reader->Bytes(&op->value);
    case Of(OpKind::kAppend,
            WireTag(Append::kTtlFieldNumber, kLengthDelimited)):
    case Of(OpKind::kCombine,
            WireTag(Combine::kTtlFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGather,
            WireTag(Gather::kTtlFieldNumber, kLengthDelimited)):
      return reader->Bytes(&bytes) && ReadTtl(bytes, op);
    case Of(OpKind::kAppend, WireTag(Append::kTouchFieldNumber, kVarint)):
    case Of(OpKind::kCombine, WireTag(Combine::kTouchFieldNumber, kVarint)):
    case Of(OpKind::kGather, WireTag(Gather::kTouchFieldNumber, kVarint)):
      return reader->Bool(&op->touch);
    case Of(OpKind::kAppend, WireTag(Append::kConditionFieldNumber, kVarint)):
      return ReadCondition(reader, op);
    case Of(OpKind::kAppend, WireTag(Append::kIfVersionFieldNumber, kVarint)):
    case Of(OpKind::kCombine, WireTag(Combine::kIfVersionFieldNumber, kVarint)):
      return ReadIfVersion(reader, op);
    case Of(OpKind::kAppend,
            WireTag(Append::kIdempotencyIdFieldNumber, kLengthDelimited)):
    case Of(OpKind::kCombine,
            WireTag(Combine::kIdempotencyIdFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGather,
            WireTag(Gather::kIdempotencyIdFieldNumber, kLengthDelimited)):
      return reader->Bytes(&bytes) && (op->SetId(bytes), true);
    case Of(OpKind::kAppend,
            WireTag(Append::kTraceparentFieldNumber, kLengthDelimited)):
    case Of(OpKind::kCombine,
            WireTag(Combine::kTraceparentFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGather,
            WireTag(Gather::kTraceparentFieldNumber, kLengthDelimited)):
      return ReadTrace(reader, op);
    case Of(OpKind::kCombine, WireTag(Combine::kXorFieldNumber, kVarint)):
      op->combination = Combination::kXor;
      [[fallthrough]];
    case Of(OpKind::kCombine, WireTag(Combine::kAddFieldNumber, kVarint)):
      return ReadSigned(reader, &op->operand);
    case Of(OpKind::kCombine, WireTag(Combine::kInitialFieldNumber, kVarint)):
      return ReadSigned(reader, &op->initial);
    case Of(OpKind::kCombine,
            WireTag(Combine::kRemoveIfZeroFieldNumber, kVarint)):
      return reader->Bool(&op->remove_if_zero);
    case Of(OpKind::kGather,
            WireTag(Gather::kPartFieldNumber, kLengthDelimited)):
      return reader->Bytes(&expected->part);
    case Of(OpKind::kGather,
            WireTag(Gather::kExpectedPartsFieldNumber, kVarint)):
      return reader->Varint(&expected->parts) && expected->parts <= UINT32_MAX;
    case Of(OpKind::kGather, WireTag(Gather::kKeepFirstFieldNumber, kVarint)):
      return reader->Bool(&expected->keep_first);
    case Of(OpKind::kGather,
            WireTag(Gather::kRememberFieldNumber, kLengthDelimited)):
      // The generated parser refuses none.
      return reader->Bytes(&bytes) &&
             ReadDuration(bytes, &expected->remember_us) &&
             expected->remember_us != 0;
    case Of(OpKind::kGather, kExpectedName):
      return reader->Bytes(&bytes) && (expected->names.push_back(bytes), true);
    default:
      return false;
  }
}

bool ReadField(OpKind kind, uint8_t tag, WireReader* reader, Operation* op) {
  using Put = v1::PutRequest;
  using Get = v1::GetRequest;
  using Contains = v1::ContainsRequest;
  using Touch = v1::TouchRequest;
  using Remove = v1::RemoveRequest;
  absl::string_view bytes;
  switch (Of(kind, tag)) {
    case Of(OpKind::kPut, WireTag(Put::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGet, WireTag(Get::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kRemove,
            WireTag(Remove::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kContains,
            WireTag(Contains::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kTouch, WireTag(Touch::kKeyFieldNumber, kLengthDelimited)):
      return reader->Bytes(&op->key);
    case Of(OpKind::kPut, WireTag(Put::kValueFieldNumber, kLengthDelimited)):
      return reader->Bytes(&op->value);
    case Of(OpKind::kPut, WireTag(Put::kTtlFieldNumber, kLengthDelimited)):
    case Of(OpKind::kTouch, WireTag(Touch::kTtlFieldNumber, kLengthDelimited)):
      return reader->Bytes(&bytes) && ReadTtl(bytes, op);
    case Of(OpKind::kPut, WireTag(Put::kConditionFieldNumber, kVarint)):
    case Of(OpKind::kContains,
            WireTag(Contains::kConditionFieldNumber, kVarint)):
      return ReadCondition(reader, op);
    case Of(OpKind::kPut, WireTag(Put::kIfVersionFieldNumber, kVarint)):
    case Of(OpKind::kRemove, WireTag(Remove::kIfVersionFieldNumber, kVarint)):
    case Of(OpKind::kTouch, WireTag(Touch::kIfVersionFieldNumber, kVarint)):
    case Of(OpKind::kContains,
            WireTag(Contains::kIfVersionFieldNumber, kVarint)):
      return ReadIfVersion(reader, op);
    case Of(OpKind::kPut, WireTag(Put::kReturnPreviousFieldNumber, kVarint)):
    case Of(OpKind::kRemove,
            WireTag(Remove::kReturnPreviousFieldNumber, kVarint)):
      return reader->Bool(&op->return_previous);
    case Of(OpKind::kGet, WireTag(Get::kTouchFieldNumber, kVarint)):
      if (!reader->Bool(&op->touch)) return false;
      op->never_touch = !op->touch;
      return true;
    case Of(OpKind::kTouch, WireTag(Touch::kNamespaceTtlFieldNumber, kVarint)):
      return reader->Bool(&op->namespace_ttl);
    case Of(OpKind::kPut,
            WireTag(Put::kIdempotencyIdFieldNumber, kLengthDelimited)):
    case Of(OpKind::kRemove,
            WireTag(Remove::kIdempotencyIdFieldNumber, kLengthDelimited)):
      return reader->Bytes(&bytes) && (op->SetId(bytes), true);
    case Of(OpKind::kPut,
            WireTag(Put::kTraceparentFieldNumber, kLengthDelimited)):
      return ReadTrace(reader, op);
    case Of(OpKind::kPut, WireTag(Put::kKeepDeadlineFieldNumber, kVarint)):
      return reader->Bool(&op->keep_deadline);
    case Of(OpKind::kPut, WireTag(Put::kExpireAtFieldNumber, kLengthDelimited)):
    case Of(OpKind::kTouch,
            WireTag(Touch::kExpireAtFieldNumber, kLengthDelimited)):
      return reader->Bytes(&bytes) && ReadExpireAt(bytes, op);
    case Of(OpKind::kPut, WireTag(Put::kAllowPastFieldNumber, kVarint)):
    case Of(OpKind::kTouch, WireTag(Touch::kAllowPastFieldNumber, kVarint)):
      return reader->Bool(&op->allow_past);
    default:
      return false;
  }
}

bool ReadFields(absl::string_view bytes, Operation* op) {
  uint32_t seen = 0;
  for (WireReader reader(bytes); !reader.done();) {
    uint8_t tag;
    if (!reader.Tag(&tag)) return false;
    const uint32_t bit = uint32_t{1} << (tag >> 3);
    if ((seen & bit) != 0) return false;
    seen |= bit;
    if (!ReadField(op->kind, tag, &reader, op)) return false;
  }
  return true;
}

// The same for operations that compute a new value from the old one.
// `gathering` is for a Gather; the generated parser refuses fields that it does
// not support.
bool ReadChange(absl::string_view bytes, Operation* op,
                absl::FunctionRef<Gathering*()> new_gathering) {
  constexpr uint32_t kAddBit = 1u << v1::CombineRequest::kAddFieldNumber;
  constexpr uint32_t kXorBit = 1u << v1::CombineRequest::kXorFieldNumber;
  Expectation expected;
  uint32_t seen = 0;
  for (WireReader reader(bytes); !reader.done();) {
    uint8_t tag;
    if (!reader.Tag(&tag)) return false;
    const uint32_t bit = uint32_t{1} << (tag >> 3);
    const bool repeated = op->kind == OpKind::kGather && tag == kExpectedName;
    if ((seen & bit) != 0 && !repeated) return false;
    seen |= bit;
    if (!ReadChangeField(op->kind, tag, &reader, op, &expected)) return false;
  }
  // One of two that exclude each other.
  if (op->kind == OpKind::kCombine) {
    return ((seen & kAddBit) != 0) != ((seen & kXorBit) != 0);
  }
  if (op->kind != OpKind::kGather) return true;
  Gathering* const gathering = new_gathering();
  op->gathering = gathering;
  if (!gathering->Set(expected.part, expected.parts, expected.names).ok()) {
    return false;
  }
  gathering->keep_first = expected.keep_first;
  gathering->remember_us = expected.remember_us;
  return true;
}

}  // namespace

bool ReadOperationFields(absl::string_view bytes, Operation* op,
                         absl::FunctionRef<Gathering*()> new_gathering) {
  return op->kind <= OpKind::kTouch ? ReadFields(bytes, op)
                                    : ReadChange(bytes, op, new_gathering);
}

}  // namespace timecache::server

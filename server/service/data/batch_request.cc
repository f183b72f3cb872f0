#include "server/service/data/batch_request.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/strings/str_cat.h"
#include "server/engine/error.h"
#include "server/service/call/convert.h"
#include "server/service/call/request.h"

namespace timecache::server {
namespace {

// A number, and where it ends: null if there is none.
struct LongVarint {
  uint64_t value;
  const char* end;
};

// Apart from WireReader, and all by value: so that its pointers can stay in
// registers.
ABSL_ATTRIBUTE_NOINLINE LongVarint ReadLongVarint(const char* at,
                                                  const char* end,
                                                  int max_bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 7 * max_bytes && at != end; shift += 7) {
    const auto byte = static_cast<uint8_t>(*at++);
    // The tenth byte has room for one bit.
    if (shift == 63 && byte > 1) break;
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return {value, at};
  }
  return {0, nullptr};
}

// Reads the protobuf wire format. Every call returns false at what it does not
// take, malformed or only unusual.
class WireReader {
 public:
  explicit WireReader(absl::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool done() const { return at_ == end_; }

  // Whether this tag is next; then the reader is behind it.
  bool Skip(uint8_t tag) {
    if (at_ == end_ || static_cast<uint8_t>(*at_) != tag) return false;
    ++at_;
    return true;
  }

  // One byte, as the tags of all fields that these messages have. The first of
  // a longer one is none of theirs.
  bool Tag(uint8_t* tag) {
    if (at_ == end_) return false;
    *tag = static_cast<uint8_t>(*at_++);
    return true;
  }

  bool Varint(uint64_t* value, int max_bytes = 10) {
    if (at_ == end_) return false;
    // Nearly all flags and lengths take one byte or two.
    const uint64_t first = static_cast<uint8_t>(*at_);
    if (first < 0x80) {
      at_ += 1;
      *value = first;
      return true;
    }
    if (end_ - at_ >= 2) {
      const uint64_t second = static_cast<uint8_t>(at_[1]);
      if (second < 0x80) {
        at_ += 2;
        *value = (first & 0x7f) | second << 7;
        return true;
      }
    }
    const LongVarint read = ReadLongVarint(at_, end_, max_bytes);
    at_ = read.end;
    *value = read.value;
    return at_ != nullptr;
  }

  bool Bytes(absl::string_view* value) {
    uint64_t size;
    if (!Varint(&size, kMaxLengthBytes) ||
        size > static_cast<uint64_t>(end_ - at_)) {
      return false;
    }
    *value = absl::string_view(at_, static_cast<size_t>(size));
    at_ += size;
    return true;
  }

  // What must be all that is left.
  bool Rest(absl::string_view* value) {
    uint64_t size;
    if (!Varint(&size, kMaxLengthBytes) ||
        size != static_cast<uint64_t>(end_ - at_)) {
      return false;
    }
    *value = absl::string_view(at_, static_cast<size_t>(size));
    at_ = end_;
    return true;
  }

  bool Bool(bool* value) {
    uint64_t number;
    if (!Varint(&number) || number > 1) return false;
    *value = number == 1;
    return true;
  }

 private:
  // The generated parser takes no longer ones, whatever their value.
  static constexpr int kMaxLengthBytes = 5;

  const char* at_;
  const char* end_;
};

constexpr uint8_t Field(int number, int wire_type) {
  return static_cast<uint8_t>(number << 3 | wire_type);
}
constexpr int kVarint = 0;
constexpr int kLengthDelimited = 2;

// The one field that may come more than once.
constexpr uint8_t kExpectedName =
    Field(v1::GatherRequest::kExpectedNamesFieldNumber, kLengthDelimited);

// Of a field of a request and the kind of its operation, one number to switch
// on.
constexpr int Of(OpKind kind, uint8_t tag) {
  return static_cast<int>(kind) << 8 | tag;
}

bool ReadTtl(absl::string_view bytes, Operation* op) {
  uint64_t seconds = 0;
  uint64_t nanos = 0;
  uint32_t seen = 0;
  for (WireReader reader(bytes); !reader.done();) {
    uint8_t tag;
    if (!reader.Tag(&tag)) return false;
    uint64_t* value;
    switch (tag) {
      case Field(google::protobuf::Duration::kSecondsFieldNumber, kVarint):
        value = &seconds;
        break;
      case Field(google::protobuf::Duration::kNanosFieldNumber, kVarint):
        value = &nanos;
        break;
      default:
        return false;
    }
    const uint32_t bit = uint32_t{1} << (tag >> 3);
    if ((seen & bit) != 0 || !reader.Varint(value)) return false;
    seen |= bit;
  }
  if (nanos > INT32_MAX) return false;
  const auto ttl_us = DurationToMicros(static_cast<int64_t>(seconds),
                                       static_cast<int32_t>(nanos), "ttl");
  if (!ttl_us.ok()) return false;
  op->has_ttl = true;
  op->ttl_us = *ttl_us;
  return true;
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

// What a Gather expects, until all of it is read.
struct Expectation {
  absl::string_view part;
  uint64_t parts = 0;
  std::vector<absl::string_view> names;
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

// Of the operations that make a new value of the old one.
bool ReadChangeField(OpKind kind, uint8_t tag, WireReader* reader,
                     Operation* op, Expectation* expected) {
  using Append = v1::AppendRequest;
  using Combine = v1::CombineRequest;
  using Gather = v1::GatherRequest;
  absl::string_view bytes;
  switch (Of(kind, tag)) {
    case Of(OpKind::kAppend, Field(Append::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kCombine,
            Field(Combine::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGather, Field(Gather::kKeyFieldNumber, kLengthDelimited)):
      return reader->Bytes(&op->key);
    case Of(OpKind::kAppend,
            Field(Append::kValueFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGather,
            Field(Gather::kValueFieldNumber, kLengthDelimited)):
      return reader->Bytes(&op->value);
    case Of(OpKind::kAppend, Field(Append::kTtlFieldNumber, kLengthDelimited)):
    case Of(OpKind::kCombine,
            Field(Combine::kTtlFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGather, Field(Gather::kTtlFieldNumber, kLengthDelimited)):
      return reader->Bytes(&bytes) && ReadTtl(bytes, op);
    case Of(OpKind::kAppend, Field(Append::kTouchFieldNumber, kVarint)):
    case Of(OpKind::kCombine, Field(Combine::kTouchFieldNumber, kVarint)):
    case Of(OpKind::kGather, Field(Gather::kTouchFieldNumber, kVarint)):
      return reader->Bool(&op->touch);
    case Of(OpKind::kAppend, Field(Append::kConditionFieldNumber, kVarint)):
      return ReadCondition(reader, op);
    case Of(OpKind::kAppend, Field(Append::kIfVersionFieldNumber, kVarint)):
    case Of(OpKind::kCombine, Field(Combine::kIfVersionFieldNumber, kVarint)):
      return ReadIfVersion(reader, op);
    case Of(OpKind::kCombine, Field(Combine::kXorFieldNumber, kVarint)):
      op->combination = Combination::kXor;
      [[fallthrough]];
    case Of(OpKind::kCombine, Field(Combine::kAddFieldNumber, kVarint)):
      return ReadSigned(reader, &op->operand);
    case Of(OpKind::kCombine, Field(Combine::kInitialFieldNumber, kVarint)):
      return ReadSigned(reader, &op->initial);
    case Of(OpKind::kCombine,
            Field(Combine::kRemoveIfZeroFieldNumber, kVarint)):
      return reader->Bool(&op->remove_if_zero);
    case Of(OpKind::kGather, Field(Gather::kPartFieldNumber, kLengthDelimited)):
      return reader->Bytes(&expected->part);
    case Of(OpKind::kGather, Field(Gather::kExpectedPartsFieldNumber, kVarint)):
      return reader->Varint(&expected->parts) && expected->parts <= UINT32_MAX;
    case Of(OpKind::kGather, kExpectedName):
      return reader->Bytes(&bytes) && (expected->names.push_back(bytes), true);
    default:
      return false;
  }
}

bool ReadField(OpKind kind, uint8_t tag, WireReader* reader, Operation* op) {
  using Put = v1::PutRequest;
  using Get = v1::GetRequest;
  using Touch = v1::TouchRequest;
  using Remove = v1::RemoveRequest;
  absl::string_view bytes;
  switch (Of(kind, tag)) {
    case Of(OpKind::kPut, Field(Put::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kGet, Field(Get::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kRemove, Field(Remove::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kContains,
            Field(v1::ContainsRequest::kKeyFieldNumber, kLengthDelimited)):
    case Of(OpKind::kTouch, Field(Touch::kKeyFieldNumber, kLengthDelimited)):
      return reader->Bytes(&op->key);
    case Of(OpKind::kPut, Field(Put::kValueFieldNumber, kLengthDelimited)):
      return reader->Bytes(&op->value);
    case Of(OpKind::kPut, Field(Put::kTtlFieldNumber, kLengthDelimited)):
    case Of(OpKind::kTouch, Field(Touch::kTtlFieldNumber, kLengthDelimited)):
      return reader->Bytes(&bytes) && ReadTtl(bytes, op);
    case Of(OpKind::kPut, Field(Put::kConditionFieldNumber, kVarint)):
      return ReadCondition(reader, op);
    case Of(OpKind::kPut, Field(Put::kIfVersionFieldNumber, kVarint)):
    case Of(OpKind::kRemove, Field(Remove::kIfVersionFieldNumber, kVarint)):
    case Of(OpKind::kTouch, Field(Touch::kIfVersionFieldNumber, kVarint)):
      return ReadIfVersion(reader, op);
    case Of(OpKind::kPut, Field(Put::kReturnPreviousFieldNumber, kVarint)):
    case Of(OpKind::kRemove,
            Field(Remove::kReturnPreviousFieldNumber, kVarint)):
      return reader->Bool(&op->return_previous);
    case Of(OpKind::kGet, Field(Get::kTouchFieldNumber, kVarint)):
      return reader->Bool(&op->touch);
    case Of(OpKind::kPut, Field(Put::kKeepDeadlineFieldNumber, kVarint)):
      return reader->Bool(&op->keep_deadline);
    default:
      return false;
  }
}

// Of every kind of request.
constexpr uint8_t kKey =
    Field(v1::GetRequest::kKeyFieldNumber, kLengthDelimited);

// Whether an operation of this kind has its value behind its key.
bool HasValue(OpKind kind) {
  return kind == OpKind::kPut || kind == OpKind::kAppend;
}
static_assert(Field(v1::AppendRequest::kValueFieldNumber, kLengthDelimited) ==
              Field(v1::PutRequest::kValueFieldNumber, kLengthDelimited));

// Whether it may be a key and nothing else.
bool NeedsKeyOnly(OpKind kind) {
  return kind != OpKind::kCombine && kind != OpKind::kGather;
}

// A request as nearly all are: a key and, of a put, a value. False for any
// other; what was set then, ReadFields() sets again.
bool ReadKeyAndValue(absl::string_view bytes, Operation* op) {
  constexpr uint8_t kValue =
      Field(v1::PutRequest::kValueFieldNumber, kLengthDelimited);
  WireReader reader(bytes);
  if (!reader.Skip(kKey) || !reader.Bytes(&op->key)) return false;
  return reader.done() ||
         (HasValue(op->kind) && reader.Skip(kValue) && reader.Rest(&op->value));
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

// The same of operations that make a new value of the old one. `gathering` is
// for a Gather; what it does not take is for the generated parser's way to
// refuse.
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
  return gathering->Set(expected.part, expected.parts, expected.names).ok();
}

bool ReadKind(uint8_t tag, OpKind* kind) {
  switch (tag) {
    case Field(v1::Operation::kPutFieldNumber, kLengthDelimited):
      *kind = OpKind::kPut;
      return true;
    case Field(v1::Operation::kGetFieldNumber, kLengthDelimited):
      *kind = OpKind::kGet;
      return true;
    case Field(v1::Operation::kRemoveFieldNumber, kLengthDelimited):
      *kind = OpKind::kRemove;
      return true;
    case Field(v1::Operation::kContainsFieldNumber, kLengthDelimited):
      *kind = OpKind::kContains;
      return true;
    case Field(v1::Operation::kTouchFieldNumber, kLengthDelimited):
      *kind = OpKind::kTouch;
      return true;
    case Field(v1::Operation::kAppendFieldNumber, kLengthDelimited):
      *kind = OpKind::kAppend;
      return true;
    case Field(v1::Operation::kCombineFieldNumber, kLengthDelimited):
      *kind = OpKind::kCombine;
      return true;
    case Field(v1::Operation::kGatherFieldNumber, kLengthDelimited):
      *kind = OpKind::kGather;
      return true;
    default:
      return false;
  }
}

// An operation that is a short key and nothing else, as most but puts are: all
// lengths in it take one byte, and follow from how long it is.
bool ReadShort(absl::string_view bytes, Operation* op) {
  const size_t size = bytes.size();
  if (size < 4 || size >= 0x80) return false;
  const auto byte = [&](size_t i) {
    return static_cast<uint8_t>(bytes.data()[i]);
  };
  // Of a put, the first of these mostly is not so.
  if (byte(3) != size - 4 || byte(2) != kKey || byte(1) != size - 2) {
    return false;
  }
  op->key = absl::string_view(bytes.data() + 4, size - 4);
  return ReadKind(byte(0), &op->kind) && NeedsKeyOnly(op->kind);
}

bool ReadOperation(absl::string_view bytes, Operation* op,
                   absl::FunctionRef<Gathering*()> new_gathering) {
  if (ReadShort(bytes, op)) return true;
  WireReader reader(bytes);
  uint8_t tag;
  absl::string_view request;
  if (!reader.Tag(&tag) || !ReadKind(tag, &op->kind) ||
      !reader.Rest(&request)) {
    return false;
  }
  if (NeedsKeyOnly(op->kind) && ReadKeyAndValue(request, op)) return true;
  return op->kind <= OpKind::kTouch ? ReadFields(request, op)
                                    : ReadChange(request, op, new_gathering);
}

absl::StatusOr<Operation> Convert(
    const v1::Operation& operation, const std::string& name,
    absl::FunctionRef<Gathering*()> new_gathering) {
  const auto convert = [&](const auto& request) -> absl::StatusOr<Operation> {
    if (!request.namespace_().empty() && request.namespace_() != name) {
      return InvalidField("namespace", "must be empty or the batch's");
    }
    if constexpr (requires { request.part(); }) {
      return ToOperation(request, new_gathering());
    } else {
      return ToOperation(request);
    }
  };
  switch (operation.request_case()) {
    case v1::Operation::kPut:
      return convert(operation.put());
    case v1::Operation::kGet:
      return convert(operation.get());
    case v1::Operation::kRemove:
      return convert(operation.remove());
    case v1::Operation::kContains:
      return convert(operation.contains());
    case v1::Operation::kTouch:
      return convert(operation.touch());
    case v1::Operation::kAppend:
      return convert(operation.append());
    case v1::Operation::kCombine:
      return convert(operation.combine());
    case v1::Operation::kGather:
      return convert(operation.gather());
    case v1::Operation::REQUEST_NOT_SET:
      break;
  }
  return InvalidField("request",
                      "must be set to one of put, get, remove, "
                      "contains, touch, append, combine, gather");
}

}  // namespace

absl::Status BatchRequest::Decode(const grpc::ByteBuffer& message) {
  const bool dumped = message.TrySingleSlice(&bytes_).ok() ||
                      message.DumpToSingleSlice(&bytes_).ok();
  const absl::string_view bytes(
      dumped ? reinterpret_cast<const char*>(bytes_.begin()) : nullptr,
      dumped ? bytes_.size() : 0);
  if (!DecodePlain(bytes)) {
    if (absl::Status s = DecodeAny(bytes); !s.ok()) return s;
  }
  const size_t count = operations_.size() + refused_.size();
  if (count == 0 || count > kMaxOperations) {
    return InvalidField("operations",
                        absl::StrCat("must be 1 to ", kMaxOperations,
                                     " operations, not ", count));
  }
  return absl::OkStatus();
}

void BatchRequest::Refuse(
    absl::FunctionRef<absl::Status(const Operation&)> check) {
  std::vector<Refused> before;
  before.swap(refused_);
  auto next = before.begin();
  size_t kept = 0;
  // `index` counts all operations of the message.
  size_t index = 0;
  const auto skip_refused = [&] {
    for (; next != before.end() && next->index == index; ++next, ++index) {
      refused_.push_back(std::move(*next));
    }
  };
  for (size_t i = 0; i < operations_.size(); ++i, ++index) {
    skip_refused();
    absl::Status status = check(operations_[i]);
    if (status.ok()) {
      operations_[kept++] = operations_[i];
    } else {
      refused_.push_back({index, std::move(status)});
    }
  }
  skip_refused();
  operations_.resize(kept);
}

// Those of the last message; its large ones are not kept for the next.
void BatchRequest::DropGatherings() {
  constexpr size_t kMaxKeptBytes = 256;
  for (size_t i = 0; i < gatherings_used_; ++i) {
    if (gatherings_[i].expectation().size() <= kMaxKeptBytes) continue;
    gatherings_.clear();
    break;
  }
  gatherings_used_ = 0;
}

Gathering* BatchRequest::NewGathering() {
  if (gatherings_used_ == gatherings_.size()) gatherings_.emplace_back();
  return &gatherings_[gatherings_used_++];
}

// False for a message that is malformed, or merely not plain.
bool BatchRequest::DecodePlain(absl::string_view bytes) {
  parsed_.reset();
  name_ = {};
  operations_.clear();
  refused_.clear();
  DropGatherings();
  const auto new_gathering = [this] { return NewGathering(); };
  bool named = false;
  for (WireReader reader(bytes); !reader.done();) {
    uint8_t tag;
    absl::string_view field;
    if (!reader.Tag(&tag) || !reader.Bytes(&field)) return false;
    switch (tag) {
      case Field(v1::ExecuteRequest::kNamespaceFieldNumber, kLengthDelimited):
        if (named) return false;
        named = true;
        name_ = field;
        break;
      case Field(v1::ExecuteRequest::kOperationsFieldNumber, kLengthDelimited):
        // The generated parser says how many there are.
        if (operations_.size() == kMaxOperations) return false;
        if (!ReadOperation(field, &operations_.emplace_back(), new_gathering)) {
          return false;
        }
        break;
      default:
        return false;
    }
  }
  // A string field that is not UTF-8 is for the generated parser to refuse.
  for (const char c : name_) {
    if (static_cast<uint8_t>(c) >= 0x80) return false;
  }
  return true;
}

absl::Status BatchRequest::DecodeAny(absl::string_view bytes) {
  operations_.clear();
  DropGatherings();
  parsed_ = std::make_unique<v1::ExecuteRequest>();
  if (!parsed_->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return MalformedRequest(parsed_->GetTypeName());
  }
  name_ = parsed_->namespace_();
  // So many are refused as a whole.
  if (static_cast<size_t>(parsed_->operations_size()) > kMaxOperations) {
    operations_.resize(static_cast<size_t>(parsed_->operations_size()));
    return absl::OkStatus();
  }
  for (int i = 0; i < parsed_->operations_size(); ++i) {
    auto operation = Convert(parsed_->operations(i), parsed_->namespace_(),
                             [this] { return NewGathering(); });
    if (operation.ok()) {
      operations_.push_back(*std::move(operation));
    } else {
      refused_.push_back({static_cast<size_t>(i), operation.status()});
    }
  }
  return absl::OkStatus();
}

}  // namespace timecache::server

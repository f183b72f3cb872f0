#include "server/rpc/data/batch_request.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/api/proto_operation.h"
#include "server/base/error.h"
#include "server/base/wire_reader.h"
#include "server/rpc/call/request.h"
#include "server/rpc/data/operation_fields.h"

namespace timecache::server {
namespace {

// Of every kind of request.
constexpr uint8_t kKey =
    WireTag(v1::GetRequest::kKeyFieldNumber, kLengthDelimited);

// Whether an operation of this kind has its value behind its key.
bool HasValue(OpKind kind) {
  return kind == OpKind::kPut || kind == OpKind::kAppend;
}
static_assert(WireTag(v1::AppendRequest::kValueFieldNumber, kLengthDelimited) ==
              WireTag(v1::PutRequest::kValueFieldNumber, kLengthDelimited));

// Whether it may be a key and nothing else.
bool NeedsKeyOnly(OpKind kind) {
  return kind != OpKind::kCombine && kind != OpKind::kGather;
}

// A request as nearly all are: a key and, of a put, a value. False for any
// other; what was set then, ReadOperationFields sets again.
inline bool ReadKeyAndValue(absl::string_view bytes, Operation* op) {
  constexpr uint8_t kValue =
      WireTag(v1::PutRequest::kValueFieldNumber, kLengthDelimited);
  WireReader reader(bytes);
  if (!reader.Skip(kKey) || !reader.Bytes(&op->key)) return false;
  return reader.done() ||
         (HasValue(op->kind) && reader.Skip(kValue) && reader.Rest(&op->value));
}

inline bool ReadKind(uint8_t tag, OpKind* kind) {
  switch (tag) {
    case WireTag(v1::Operation::kPutFieldNumber, kLengthDelimited):
      *kind = OpKind::kPut;
      return true;
    case WireTag(v1::Operation::kGetFieldNumber, kLengthDelimited):
      *kind = OpKind::kGet;
      return true;
    case WireTag(v1::Operation::kRemoveFieldNumber, kLengthDelimited):
      *kind = OpKind::kRemove;
      return true;
    case WireTag(v1::Operation::kContainsFieldNumber, kLengthDelimited):
      *kind = OpKind::kContains;
      return true;
    case WireTag(v1::Operation::kTouchFieldNumber, kLengthDelimited):
      *kind = OpKind::kTouch;
      return true;
    case WireTag(v1::Operation::kAppendFieldNumber, kLengthDelimited):
      *kind = OpKind::kAppend;
      return true;
    case WireTag(v1::Operation::kCombineFieldNumber, kLengthDelimited):
      *kind = OpKind::kCombine;
      return true;
    case WireTag(v1::Operation::kGatherFieldNumber, kLengthDelimited):
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
  return ReadOperationFields(request, op, new_gathering);
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
                      "must be set to one of put, get, remove, contains, "
                      "touch, append, combine, gather");
}

OpKind KindOf(const v1::Operation& operation) {
  OpKind kind = OpKind::kPut;
  ReadKind(WireTag(operation.request_case(), kLengthDelimited), &kind);
  return kind;
}

// Of this request.
absl::Status CheckAtomic(size_t operations, size_t bytes) {
  if (operations > kMaxAtomicOperations) {
    return InvalidField(
        "operations",
        absl::StrCat("must be at most ", kMaxAtomicOperations,
                     " operations in an atomic batch, not ", operations));
  }
  if (bytes > kMaxAtomicBytes) {
    return InvalidField("operations",
                        absl::StrCat("must be at most ", kMaxAtomicBytes,
                                     " bytes in an atomic batch, not ", bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BatchRequest::Decode(const grpc::ByteBuffer& message) {
  Clear();
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
  if (atomic_ && independent_) {
    return InvalidField("independent", "must not be set with atomic");
  }
  return atomic_ ? CheckAtomic(count, bytes.size()) : absl::OkStatus();
}

void BatchRequest::Refuse(
    absl::FunctionRef<absl::Status(const Operation&, size_t)> check) {
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
    absl::Status status = check(operations_[i], index);
    if (status.ok()) {
      operations_[kept++] = operations_[i];
    } else {
      refused_.push_back({index, std::move(status), operations_[i].kind});
    }
  }
  skip_refused();
  operations_.resize(kept);
}

const BatchRequest::CallIds* BatchRequest::CallIdsOf(size_t index) const {
  const auto found = std::lower_bound(
      call_ids_.begin(), call_ids_.end(), index,
      [](const CallIds& ids, size_t at) { return ids.index < at; });
  return found == call_ids_.end() || found->index != index ? nullptr : &*found;
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

void BatchRequest::Clear() {
  name_ = {};
  atomic_ = false;
  independent_ = false;
  operations_.clear();
  refused_ = {};
  call_ids_ = {};
  DropGatherings();
  parsed_.reset();
  bytes_ = grpc::Slice();
}

// False for a message that is malformed, or merely not plain.
bool BatchRequest::DecodePlain(absl::string_view bytes) {
  const auto new_gathering = [this] { return NewGathering(); };
  bool named = false;
  for (WireReader reader(bytes); !reader.done();) {
    uint8_t tag;
    absl::string_view field;
    if (!reader.Tag(&tag)) return false;
    if (tag == WireTag(v1::ExecuteRequest::kAtomicFieldNumber, kVarint)) {
      if (atomic_ || !reader.Bool(&atomic_)) return false;
      continue;
    }
    if (tag == WireTag(v1::ExecuteRequest::kIndependentFieldNumber, kVarint)) {
      if (independent_ || !reader.Bool(&independent_)) return false;
      continue;
    }
    if (!reader.Bytes(&field)) return false;
    switch (tag) {
      case WireTag(v1::ExecuteRequest::kNamespaceFieldNumber, kLengthDelimited):
        if (named) return false;
        named = true;
        name_ = field;
        break;
      case WireTag(v1::ExecuteRequest::kOperationsFieldNumber,
                   kLengthDelimited):
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
  atomic_ = parsed_->atomic();
  independent_ = parsed_->independent();
  // So many are refused as a whole.
  if (static_cast<size_t>(parsed_->operations_size()) > kMaxOperations) {
    operations_.resize(static_cast<size_t>(parsed_->operations_size()));
    return absl::OkStatus();
  }
  for (int i = 0; i < parsed_->operations_size(); ++i) {
    const v1::Operation& each = parsed_->operations(i);
    const auto index = static_cast<size_t>(i);
    auto operation =
        Convert(each, parsed_->namespace_(), [this] { return NewGathering(); });
    if (operation.ok()) {
      operations_.push_back(*std::move(operation));
    } else {
      refused_.push_back({index, operation.status(), KindOf(each)});
    }
    if (!each.request_id().empty() || !each.traceparent().empty()) {
      call_ids_.push_back({index, each.request_id(), each.traceparent()});
    }
  }
  return absl::OkStatus();
}

}  // namespace timecache::server

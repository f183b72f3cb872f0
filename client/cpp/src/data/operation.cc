#include "timecache/operation.h"

#include <utility>

#include "client/cpp/src/data/operation_result.h"
#include "client/cpp/src/data/requests.h"
#include "client/cpp/src/rpc/rpc_status.h"
#include "google/protobuf/io/coded_stream.h"

namespace timecache {
namespace {

using google::protobuf::io::CodedOutputStream;

// Whether it is the response of the operation's kind: the two oneofs have the
// kinds in the same order, one field number apart.
bool IsAnswer(const v1::Operation& operation,
              const v1::OperationResult& answer) {
  return static_cast<int>(answer.result_case()) ==
         static_cast<int>(operation.request_case()) + 1;
}

template <typename Options, typename Request>
void SetPrecondition(const Options& options, Request& request) {
  if (options.if_version) {
    request.set_if_version(*options.if_version);
  } else if (options.condition == PutCondition::kIfAbsent) {
    request.set_condition(v1::PUT_CONDITION_IF_ABSENT);
  } else if (options.condition == PutCondition::kIfPresent) {
    request.set_condition(v1::PUT_CONDITION_IF_PRESENT);
  }
}

}  // namespace

Operation::Operation() : proto_(std::make_unique<v1::Operation>()) {}
Operation::Operation(const Operation& other)
    : proto_(std::make_unique<v1::Operation>(*other.proto_)) {}
Operation& Operation::operator=(const Operation& other) {
  return *this = Operation(other);
}
Operation::Operation(Operation&& other) noexcept = default;
Operation& Operation::operator=(Operation&& other) noexcept = default;
Operation::~Operation() = default;

std::unique_ptr<v1::Operation> Operation::proto() && {
  return std::move(proto_);
}

Operation Operation::Put(std::string_view key, std::string_view value,
                         const PutOptions& options) {
  Operation operation;
  v1::PutRequest& put = *operation.proto_->mutable_put();
  put.set_key(std::string(key));
  put.set_value(std::string(value));
  SetLife(options, put);
  SetPrecondition(options, put);
  put.set_return_previous(options.return_previous);
  put.set_keep_deadline(options.keep_deadline);
  put.set_idempotency_id(options.idempotency_id);
  put.set_traceparent(options.traceparent);
  return operation;
}

Operation Operation::Get(std::string_view key, const GetOptions& options) {
  Operation operation;
  v1::GetRequest& get = *operation.proto_->mutable_get();
  get.set_key(std::string(key));
  if (options.touch) get.set_touch(*options.touch);
  return operation;
}

Operation Operation::Remove(std::string_view key,
                            const RemoveOptions& options) {
  Operation operation;
  v1::RemoveRequest& remove = *operation.proto_->mutable_remove();
  remove.set_key(std::string(key));
  if (options.if_version) remove.set_if_version(*options.if_version);
  remove.set_return_previous(options.return_previous);
  remove.set_idempotency_id(options.idempotency_id);
  return operation;
}

Operation Operation::Contains(std::string_view key,
                              const ContainsOptions& options) {
  Operation operation;
  v1::ContainsRequest& contains = *operation.proto_->mutable_contains();
  contains.set_key(std::string(key));
  SetPrecondition(options, contains);
  return operation;
}

Operation Operation::Touch(std::string_view key, const TouchOptions& options) {
  Operation operation;
  v1::TouchRequest& touch = *operation.proto_->mutable_touch();
  touch.set_key(std::string(key));
  SetLife(options, touch);
  touch.set_namespace_ttl(options.namespace_ttl);
  if (options.if_version) touch.set_if_version(*options.if_version);
  return operation;
}

Operation Operation::Append(std::string_view key, std::string_view value,
                            const AppendOptions& options) {
  Operation operation;
  v1::AppendRequest& append = *operation.proto_->mutable_append();
  append.set_key(std::string(key));
  append.set_value(std::string(value));
  if (options.ttl) *append.mutable_ttl() = ToProto(*options.ttl);
  SetPrecondition(options, append);
  append.set_touch(options.touch);
  append.set_idempotency_id(options.idempotency_id);
  append.set_traceparent(options.traceparent);
  return operation;
}

Operation Operation::Combine(std::string_view key, Combination combination,
                             int64_t operand, const CombineOptions& options) {
  Operation operation;
  v1::CombineRequest& combine = *operation.proto_->mutable_combine();
  combine.set_key(std::string(key));
  if (combination == Combination::kXor) {
    combine.set_xor_(operand);
  } else {
    combine.set_add(operand);
  }
  combine.set_initial(options.initial);
  combine.set_remove_if_zero(options.remove_if_zero);
  combine.set_touch(options.touch);
  combine.set_idempotency_id(options.idempotency_id);
  combine.set_traceparent(options.traceparent);
  if (options.ttl) *combine.mutable_ttl() = ToProto(*options.ttl);
  if (options.if_version) combine.set_if_version(*options.if_version);
  return operation;
}

Operation Operation::Gather(std::string_view key, std::string_view part,
                            std::string_view value,
                            const GatherOptions& options) {
  Operation operation;
  v1::GatherRequest& gather = *operation.proto_->mutable_gather();
  gather.set_key(std::string(key));
  gather.set_part(std::string(part));
  gather.set_value(std::string(value));
  gather.set_expected_parts(options.expected_parts);
  for (const std::string& name : options.expected_names) {
    gather.add_expected_names(name);
  }
  gather.set_keep_first(options.keep_first);
  if (options.remember) {
    *gather.mutable_remember() = ToProto(*options.remember);
  }
  gather.set_touch(options.touch);
  gather.set_idempotency_id(options.idempotency_id);
  gather.set_traceparent(options.traceparent);
  if (options.ttl) *gather.mutable_ttl() = ToProto(*options.ttl);
  return operation;
}

size_t Operation::bytes() const {
  const size_t length = proto_->ByteSizeLong();
  return 1 + CodedOutputStream::VarintSize64(length) + length;  // 1: the tag.
}

const std::string& KeyOf(const v1::Operation& operation) {
  switch (operation.request_case()) {
    case v1::Operation::kGet:
      return operation.get().key();
    case v1::Operation::kRemove:
      return operation.remove().key();
    case v1::Operation::kContains:
      return operation.contains().key();
    case v1::Operation::kTouch:
      return operation.touch().key();
    case v1::Operation::kAppend:
      return operation.append().key();
    case v1::Operation::kCombine:
      return operation.combine().key();
    case v1::Operation::kGather:
      return operation.gather().key();
    case v1::Operation::kPut:
    case v1::Operation::REQUEST_NOT_SET:
      break;
  }
  return operation.put().key();
}

// A condition that held at first may not hold again.
bool IsRepeatable(const v1::Operation& operation) {
  switch (operation.request_case()) {
    case v1::Operation::kGet:
    case v1::Operation::kTouch:
      return true;
    case v1::Operation::kContains:
      return operation.contains().precondition_case() ==
             v1::ContainsRequest::PRECONDITION_NOT_SET;
    case v1::Operation::kPut:
      return !operation.put().idempotency_id().empty();
    case v1::Operation::kRemove:
      return !operation.remove().idempotency_id().empty();
    case v1::Operation::kAppend:
      return !operation.append().idempotency_id().empty();
    case v1::Operation::kCombine:
      return !operation.combine().idempotency_id().empty();
    case v1::Operation::kGather:
      return !operation.gather().idempotency_id().empty();
    case v1::Operation::REQUEST_NOT_SET:
      break;
  }
  return false;
}

OperationResult TakeResult(const v1::Operation& operation,
                           v1::OperationResult& answer) {
  OperationResult result;
  if (answer.has_error()) {
    result.status = FromRpcStatus(answer.error());
    if (!result.status.ok()) return result;
  }
  if (!IsAnswer(operation, answer)) {
    result.status = absl::InternalError(
        "the server's answer is not to this operation: is it of this version?");
    return result;
  }
  switch (answer.result_case()) {
    case v1::OperationResult::kPut:
      result.version = answer.put().version();
      result.entry = TakePrevious(*answer.mutable_put());
      break;
    case v1::OperationResult::kGet:
      result.entry = TakeAnswer(*answer.mutable_get());
      result.found = result.entry.has_value();
      break;
    case v1::OperationResult::kRemove:
      result.found = answer.remove().removed();
      result.entry = TakePrevious(*answer.mutable_remove());
      break;
    case v1::OperationResult::kContains:
      result.found = answer.contains().contains();
      break;
    case v1::OperationResult::kAppend:
      result.version = answer.append().version();
      result.number = static_cast<int64_t>(answer.append().value_bytes());
      result.created = answer.append().created();
      break;
    case v1::OperationResult::kCombine:
      result.version = answer.combine().version();
      result.number = answer.combine().result();
      result.created = answer.combine().created();
      result.removed = answer.combine().removed();
      break;
    case v1::OperationResult::kGather:
      result.version = answer.gather().version();
      result.number = answer.gather().count();
      result.duplicate = answer.gather().duplicate();
      result.parts = TakeParts(*answer.mutable_gather());
      break;
    default:
      result.found = answer.touch().touched();
      result.version = answer.touch().version();
  }
  // The server leaves out the key, which the operation has.
  if (result.entry) result.entry->key = KeyOf(operation);
  return result;
}

}  // namespace timecache

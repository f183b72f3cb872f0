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

const std::string& KeyOf(const v1::Operation& operation) {
  switch (operation.request_case()) {
    case v1::Operation::kGet:
      return operation.get().key();
    case v1::Operation::kRemove:
      return operation.remove().key();
    default:
      return operation.put().key();
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
  *operation.proto_->mutable_put() = MakePutRequest("", key, value, options);
  return operation;
}

Operation Operation::Get(std::string_view key, const GetOptions& options) {
  Operation operation;
  *operation.proto_->mutable_get() = MakeGetRequest("", key, options);
  return operation;
}

Operation Operation::Remove(std::string_view key,
                            const RemoveOptions& options) {
  Operation operation;
  *operation.proto_->mutable_remove() = MakeRemoveRequest("", key, options);
  return operation;
}

Operation Operation::Contains(std::string_view key) {
  Operation operation;
  *operation.proto_->mutable_contains() =
      KeyRequest<v1::ContainsRequest>("", key);
  return operation;
}

Operation Operation::Touch(std::string_view key, const TouchOptions& options) {
  Operation operation;
  *operation.proto_->mutable_touch() = MakeTouchRequest("", key, options);
  return operation;
}

Operation Operation::Append(std::string_view key, std::string_view value,
                            const AppendOptions& options) {
  Operation operation;
  *operation.proto_->mutable_append() =
      MakeAppendRequest("", key, value, options);
  return operation;
}

Operation Operation::Combine(std::string_view key, Combination combination,
                             int64_t operand, const CombineOptions& options) {
  Operation operation;
  *operation.proto_->mutable_combine() =
      MakeCombineRequest("", key, combination, operand, options);
  return operation;
}

Operation Operation::Gather(std::string_view key, std::string_view part,
                            std::string_view value,
                            const GatherOptions& options) {
  Operation operation;
  *operation.proto_->mutable_gather() =
      MakeGatherRequest("", key, part, value, options);
  return operation;
}

size_t Operation::bytes() const {
  const size_t length = proto_->ByteSizeLong();
  return 1 + CodedOutputStream::VarintSize64(length) + length;  // 1: the tag.
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

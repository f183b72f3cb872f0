#include "tests/support/batch_reference.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/api/proto_operation.h"
#include "server/base/error.h"
#include "server/rpc/call/request.h"
#include "server/rpc/data/batch_request.h"
#include "timecache/v1/data.pb.h"

namespace timecache::server {
namespace {

// A decoded operation as text, or its error.
std::string Text(const Operation& op) {
  return absl::StrCat(
      "kind=", static_cast<int>(op.kind),
      " condition=", static_cast<int>(op.condition), " touch=", op.touch,
      " never=", op.never_touch, " namespace_ttl=", op.namespace_ttl,
      " previous=", op.return_previous,
      " ttl=", op.has_ttl ? absl::StrCat(op.ttl_us) : "none",
      " until=", op.has_expire_at ? absl::StrCat(op.expire_at_us) : "none",
      op.allow_past ? " past" : "", " if=", op.if_version,
      " keep=", op.keep_deadline, " combine=", static_cast<int>(op.combination),
      " ", op.operand, " ", op.initial, " ", op.remove_if_zero,
      " part=", op.gathering ? op.gathering->part() : "",
      " of=", op.gathering ? op.gathering->expectation() : "",
      " first=", op.gathering && op.gathering->keep_first,
      " trace=", op.trace(),
      " remember=", op.gathering ? op.gathering->remember_us : 0,
      " id=", op.id(), " key=", op.key, " value=", op.value);
}

std::string Text(const absl::Status& error) {
  return absl::StrCat(absl::StatusCodeToString(error.code()), " ",
                      error.message(), " ", FieldOf(error).value_or(""));
}

}  // namespace

grpc::ByteBuffer Message(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::ostream& operator<<(std::ostream& out, const DecodedBatch& decoded) {
  out << decoded.status << " " << decoded.name;
  for (const std::string& operation : decoded.operations) {
    out << "\n  " << operation;
  }
  return out;
}

DecodedBatch DecodeBatch(const grpc::ByteBuffer& message) {
  BatchRequest request;
  const absl::Status status = request.Decode(message);
  if (!status.ok()) return {Text(status), "", {}};
  DecodedBatch decoded{absl::StrCat("OK", request.atomic() ? ", atomic" : "",
                                    request.independent() ? ", calls" : ""),
                       std::string(request.name()),
                       {}};
  for (const BatchRequest::CallIds& ids : request.call_ids()) {
    absl::StrAppend(&decoded.status, " ", ids.index, "=", ids.request_id, ",",
                    ids.traceparent);
  }
  auto refused = request.refused();
  for (const Operation& op : request.operations()) {
    while (!refused.empty() &&
           refused.front().index == decoded.operations.size()) {
      decoded.operations.push_back(Text(refused.front().status));
      refused.remove_prefix(1);
    }
    decoded.operations.push_back(Text(op));
  }
  for (const auto& each : refused) {
    // In order, each at its place.
    if (each.index != decoded.operations.size()) decoded.status = "BAD INDEX";
    decoded.operations.push_back(Text(each.status));
  }
  return decoded;
}

DecodedBatch ExpectedBatch(const std::string& bytes) {
  v1::ExecuteRequest request;
  if (!request.ParseFromString(bytes)) {
    return {Text(MalformedRequest("timecache.v1.ExecuteRequest")), "", {}};
  }
  const int count = request.operations_size();
  if (count == 0 || count > 4096) {
    return {Text(InvalidField(
                "operations",
                absl::StrCat("must be 1 to 4096 operations, not ", count))),
            "",
            {}};
  }
  if (request.atomic() && request.independent()) {
    return {Text(InvalidField("independent", "must not be set with atomic")),
            "",
            {}};
  }
  if (request.atomic() && count > 128) {
    return {Text(InvalidField(
                "operations",
                absl::StrCat("must be at most 128 operations in an atomic "
                             "batch, not ",
                             count))),
            "",
            {}};
  }
  if (request.atomic() && bytes.size() > 1 << 20) {
    return {Text(InvalidField(
                "operations",
                absl::StrCat("must be at most 1048576 bytes in an atomic "
                             "batch, not ",
                             bytes.size()))),
            "",
            {}};
  }
  DecodedBatch decoded{absl::StrCat("OK", request.atomic() ? ", atomic" : "",
                                    request.independent() ? ", calls" : ""),
                       request.namespace_(),
                       {}};
  for (int i = 0; i < count; ++i) {
    const v1::Operation& each = request.operations(i);
    if (each.request_id().empty() && each.traceparent().empty()) continue;
    absl::StrAppend(&decoded.status, " ", i, "=", each.request_id(), ",",
                    each.traceparent());
  }
  const auto convert = [&](const auto& one) -> std::string {
    if (!one.namespace_().empty() && one.namespace_() != request.namespace_()) {
      return Text(InvalidField("namespace", "must be empty or the batch's"));
    }
    Gathering gathering;
    absl::StatusOr<Operation> op;
    if constexpr (requires { one.part(); }) {
      op = ToOperation(one, &gathering);
    } else {
      op = ToOperation(one);
    }
    return op.ok() ? Text(*op) : Text(op.status());
  };
  for (const v1::Operation& operation : request.operations()) {
    switch (operation.request_case()) {
      case v1::Operation::kPut:
        decoded.operations.push_back(convert(operation.put()));
        break;
      case v1::Operation::kGet:
        decoded.operations.push_back(convert(operation.get()));
        break;
      case v1::Operation::kRemove:
        decoded.operations.push_back(convert(operation.remove()));
        break;
      case v1::Operation::kContains:
        decoded.operations.push_back(convert(operation.contains()));
        break;
      case v1::Operation::kTouch:
        decoded.operations.push_back(convert(operation.touch()));
        break;
      case v1::Operation::kAppend:
        decoded.operations.push_back(convert(operation.append()));
        break;
      case v1::Operation::kCombine:
        decoded.operations.push_back(convert(operation.combine()));
        break;
      case v1::Operation::kGather:
        decoded.operations.push_back(convert(operation.gather()));
        break;
      case v1::Operation::REQUEST_NOT_SET:
        decoded.operations.push_back(
            Text(InvalidField("request",
                              "must be set to one of put, get, remove, "
                              "contains, touch, append, combine, gather")));
        break;
    }
  }
  return decoded;
}

}  // namespace timecache::server

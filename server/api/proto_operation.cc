#include "server/api/proto_operation.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/api/proto_time.h"
#include "server/base/error.h"

namespace timecache::server {
namespace {

absl::Status SetTtl(const google::protobuf::Duration& ttl, Operation* op) {
  op->has_ttl = true;
  return SetMicros(ttl, "ttl", &op->ttl_us);
}

absl::Status SetIfVersion(uint64_t version, Operation* op) {
  if (version == 0) {
    return InvalidField("if_version",
                        "must not be 0, which no entry has: for a key that "
                        "must not be there use IF_ABSENT");
  }
  op->condition = Condition::kIfVersion;
  op->if_version = version;
  return absl::OkStatus();
}

// The same of requests that may have them.

template <typename Request>
absl::Status SetTtlIf(const Request& request, Operation* op) {
  return request.has_ttl() ? SetTtl(request.ttl(), op) : absl::OkStatus();
}

// And the time until which the entry lives.
template <typename Request>
absl::Status SetLifeIf(const Request& request, Operation* op) {
  op->allow_past = request.allow_past();
  if (request.has_expire_at()) {
    const absl::StatusOr<int64_t> time_us =
        ToMicros(request.expire_at(), "expire_at");
    if (!time_us.ok()) return time_us.status();
    op->has_expire_at = true;
    op->expire_at_us = *time_us;
  }
  return SetTtlIf(request, op);
}

template <typename Request>
absl::Status SetIfVersionIf(const Request& request, Operation* op) {
  return request.has_if_version() ? SetIfVersion(request.if_version(), op)
                                  : absl::OkStatus();
}

template <typename Request>
absl::Status SetPrecondition(const Request& request, Operation* op) {
  switch (request.condition()) {
    case v1::PUT_CONDITION_UNSPECIFIED:
      break;
    case v1::PUT_CONDITION_IF_ABSENT:
      op->condition = Condition::kIfAbsent;
      break;
    case v1::PUT_CONDITION_IF_PRESENT:
      op->condition = Condition::kIfPresent;
      break;
    default:
      return InvalidField("condition",
                          absl::StrCat("has no value ", request.condition()));
  }
  return SetIfVersionIf(request, op);
}

}  // namespace

absl::StatusOr<Operation> ToOperation(const v1::PutRequest& request) {
  Operation op = Operation::Put(request.key(), request.value());
  op.SetId(request.idempotency_id());
  op.SetTrace(request.traceparent());
  op.return_previous = request.return_previous();
  op.keep_deadline = request.keep_deadline();
  absl::Status status = SetPrecondition(request, &op);
  if (status.ok()) status = SetLifeIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::GetRequest& request) {
  Operation op = Operation::Get(request.key());
  op.touch = request.touch();
  op.never_touch = request.has_touch() && !request.touch();
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::RemoveRequest& request) {
  Operation op = Operation::Remove(request.key());
  op.SetId(request.idempotency_id());
  op.return_previous = request.return_previous();
  if (absl::Status s = SetIfVersionIf(request, &op); !s.ok()) return s;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::ContainsRequest& request) {
  Operation op = Operation::Contains(request.key());
  if (absl::Status s = SetPrecondition(request, &op); !s.ok()) return s;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::TouchRequest& request) {
  Operation op = Operation::Touch(request.key());
  op.namespace_ttl = request.namespace_ttl();
  absl::Status status = SetLifeIf(request, &op);
  if (status.ok()) status = SetIfVersionIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::AppendRequest& request) {
  Operation op = Operation::Append(request.key(), request.value());
  op.SetId(request.idempotency_id());
  op.SetTrace(request.traceparent());
  op.touch = request.touch();
  absl::Status status = SetPrecondition(request, &op);
  if (status.ok()) status = SetTtlIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::CombineRequest& request) {
  Operation op = Operation::Combine(request.key(), Combination::kAdd, 0);
  op.SetId(request.idempotency_id());
  op.SetTrace(request.traceparent());
  switch (request.operand_case()) {
    case v1::CombineRequest::kAdd:
      op.operand = request.add();
      break;
    case v1::CombineRequest::kXor:
      op.combination = Combination::kXor;
      op.operand = request.xor_();
      break;
    case v1::CombineRequest::OPERAND_NOT_SET:
      return InvalidField("operand", "must be set to one of add, xor");
  }
  op.initial = request.initial();
  op.remove_if_zero = request.remove_if_zero();
  op.touch = request.touch();
  absl::Status status = SetTtlIf(request, &op);
  if (status.ok()) status = SetIfVersionIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

absl::StatusOr<Operation> ToOperation(const v1::GatherRequest& request,
                                      Gathering* gathering) {
  Operation op = Operation::Gather(request.key(), gathering, request.value());
  op.SetId(request.idempotency_id());
  op.SetTrace(request.traceparent());
  op.touch = request.touch();
  const std::vector<absl::string_view> names(request.expected_names().begin(),
                                             request.expected_names().end());
  absl::Status status =
      gathering->Set(request.part(), request.expected_parts(), names);
  gathering->keep_first = request.keep_first();
  if (status.ok() && request.has_remember()) {
    status = SetMicros(request.remember(), "remember", &gathering->remember_us);
    if (status.ok() && gathering->remember_us == 0) {
      status = InvalidField("remember", "must be at least 1ms, not 0");
    }
  }
  if (status.ok()) status = SetTtlIf(request, &op);
  if (!status.ok()) return status;
  return op;
}

}  // namespace timecache::server

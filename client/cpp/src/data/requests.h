// The calls that each do one operation, and what their messages have in common.
// Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_DATA_REQUESTS_H_
#define TIMECACHED_CLIENT_CPP_SRC_DATA_REQUESTS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/data/operation_result.h"
#include "client/cpp/src/recipes/random_id.h"
#include "client/cpp/src/rpc/call.h"
#include "grpcpp/client_context.h"
#include "timecache/operation.h"
#include "timecache/types.h"
#include "timecache/v1/data.grpc.pb.h"

namespace timecache {

// How long the entry lives.
template <typename Options, typename Request>
void SetLife(const Options& options, Request& request) {
  if (options.ttl) *request.mutable_ttl() = ToProto(*options.ttl);
  if (options.expire_at) {
    *request.mutable_expire_at() = ToProto(*options.expire_at);
  }
  request.set_allow_past(options.allow_past);
}

// A call of the data service, blocking or not, and whether it may be repeated.
template <typename RequestType, typename ResponseType>
struct DataCall {
  using Stub = v1::TimeCacheService::Stub;
  using Request = RequestType;
  using Response = ResponseType;

  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*);
  void (Stub::async::*start)(grpc::ClientContext*, const Request*, Response*,
                             std::function<void(grpc::Status)>);
  Repeat repeat;
  // Its request in an Operation, and its response in an OperationResult; null if
  // there are none.
  Request* (v1::Operation::*in_operation)() = nullptr;
  Response* (v1::OperationResult::*in_result)() = nullptr;
  bool (v1::OperationResult::*is_result)() const = nullptr;
};

#define TIMECACHE_DATA_CALL(name, repeat, ...)                                 \
  inline constexpr DataCall<v1::name##Request, v1::name##Response> k##name = { \
      &v1::TimeCacheService::Stub::name,                                       \
      &v1::TimeCacheService::Stub::async::name, repeat, __VA_ARGS__}
#define TIMECACHE_OPERATION(name, field, repeat)                     \
  TIMECACHE_DATA_CALL(name, repeat, &v1::Operation::mutable_##field, \
                      &v1::OperationResult::mutable_##field,         \
                      &v1::OperationResult::has_##field)
TIMECACHE_OPERATION(Put, put, Repeat::kUnsafe);
TIMECACHE_OPERATION(Get, get, Repeat::kSafe);
TIMECACHE_OPERATION(Remove, remove, Repeat::kUnsafe);
TIMECACHE_OPERATION(Contains, contains, Repeat::kSafe);
TIMECACHE_OPERATION(Touch, touch, Repeat::kSafe);
TIMECACHE_OPERATION(Append, append, Repeat::kUnsafe);
TIMECACHE_OPERATION(Combine, combine, Repeat::kUnsafe);
TIMECACHE_OPERATION(Gather, gather, Repeat::kUnsafe);
TIMECACHE_DATA_CALL(Size, Repeat::kSafe);
TIMECACHE_DATA_CALL(Execute, Repeat::kUnsafe);
#undef TIMECACHE_OPERATION
#undef TIMECACHE_DATA_CALL

// Gives the request an id, if the client does so. Whether it may be repeated.
template <typename Call>
Repeat MakeRepeatable(const Call& call, const ClientOptions& options,
                      typename Call::Request& request) {
  if constexpr (requires { request.idempotency_id(); }) {
    bool returns_previous = false;
    if constexpr (requires { request.return_previous(); }) {
      returns_previous = request.return_previous();
    }
    if (options.idempotent_changes && request.idempotency_id().empty() &&
        !returns_previous) {
      request.set_idempotency_id(absl::StrCat(
          absl::Hex(RandomId(), absl::kZeroPad16), absl::Hex(RandomId())));
    }
    if (!request.idempotency_id().empty()) return Repeat::kSafe;
  }
  if constexpr (requires { request.operations(); }) return RepeatOf(request);
  return call.repeat;
}

// The entry that a put or remove returns.
template <typename Response>
std::optional<Entry> TakePrevious(Response& response) {
  if (!response.has_previous()) return std::nullopt;
  return FromProto(std::move(*response.mutable_previous()));
}

// The client's result of each response; moves the bytes out of it.
inline PutResult TakeAnswer(v1::PutResponse& response) {
  return {.version = response.version(), .previous = TakePrevious(response)};
}

inline RemoveResult TakeAnswer(v1::RemoveResponse& response) {
  return {.removed = response.removed(), .previous = TakePrevious(response)};
}

inline bool TakeAnswer(const v1::ContainsResponse& response) {
  return response.contains();
}

inline SizeResult TakeAnswer(const v1::SizeResponse& response) {
  return {.entries = response.entries(), .bytes = response.bytes()};
}

inline std::optional<uint64_t> TakeAnswer(const v1::TouchResponse& response) {
  if (!response.touched()) return std::nullopt;
  return response.version();
}

inline AppendResult TakeAnswer(const v1::AppendResponse& response) {
  return {.version = response.version(),
          .value_bytes = response.value_bytes(),
          .created = response.created()};
}

inline CombineResult TakeAnswer(const v1::CombineResponse& response) {
  return {.result = response.result(),
          .version = response.version(),
          .created = response.created(),
          .removed = response.removed()};
}

inline GatherResult TakeAnswer(v1::GatherResponse& response) {
  return {.parts = TakeParts(response),
          .version = response.version(),
          .count = response.count(),
          .duplicate = response.duplicate()};
}

inline std::optional<Entry> TakeAnswer(v1::GetResponse& response) {
  if (!response.has_entry()) return std::nullopt;
  return FromProto(std::move(*response.mutable_entry()));
}

// The response of a call in the result of its operation, which leaves out the
// entry's key. INTERNAL if it is another's.
template <typename Call>
absl::StatusOr<typename Call::Response*> ResponseIn(
    const Call& call, const typename Call::Request& request,
    v1::OperationResult& result) {
  if (!(result.*call.is_result)()) {
    return absl::InternalError(
        "the server's answer is not to this operation: is it of this version?");
  }
  typename Call::Response* const response = (result.*call.in_result)();
  if constexpr (requires { response->has_entry(); }) {
    if (response->has_entry()) {
      response->mutable_entry()->set_key(request.key());
    }
  }
  if constexpr (requires { response->has_previous(); }) {
    if (response->has_previous()) {
      response->mutable_previous()->set_key(request.key());
    }
  }
  return response;
}

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_DATA_REQUESTS_H_

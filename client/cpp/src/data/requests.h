// The messages of single operations and their responses, for single calls and
// batches. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_DATA_REQUESTS_H_
#define TIMECACHED_CLIENT_CPP_SRC_DATA_REQUESTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/cpp/src/data/convert.h"
#include "timecache/types.h"
#include "timecache/v1/data.pb.h"

namespace timecache {

// A request for a key. In a batch the namespace is left empty.
template <typename Request>
Request KeyRequest(std::string_view ns, std::string_view key) {
  Request request;
  request.set_namespace_(std::string(ns));
  request.set_key(std::string(key));
  return request;
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

// How long the entry lives.
template <typename Options, typename Request>
void SetLife(const Options& options, Request& request) {
  if (options.ttl) *request.mutable_ttl() = ToProto(*options.ttl);
  if (options.expire_at) {
    *request.mutable_expire_at() = ToProto(*options.expire_at);
  }
  request.set_allow_past(options.allow_past);
}

inline v1::PutRequest MakePutRequest(std::string_view ns, std::string_view key,
                                     std::string_view value,
                                     const PutOptions& options) {
  auto request = KeyRequest<v1::PutRequest>(ns, key);
  request.set_value(std::string(value));
  SetLife(options, request);
  SetPrecondition(options, request);
  request.set_return_previous(options.return_previous);
  request.set_keep_deadline(options.keep_deadline);
  return request;
}

inline v1::GetRequest MakeGetRequest(std::string_view ns, std::string_view key,
                                     const GetOptions& options) {
  auto request = KeyRequest<v1::GetRequest>(ns, key);
  request.set_touch(options.touch);
  return request;
}

inline v1::RemoveRequest MakeRemoveRequest(std::string_view ns,
                                           std::string_view key,
                                           const RemoveOptions& options) {
  auto request = KeyRequest<v1::RemoveRequest>(ns, key);
  if (options.if_version) request.set_if_version(*options.if_version);
  request.set_return_previous(options.return_previous);
  return request;
}

inline v1::TouchRequest MakeTouchRequest(std::string_view ns,
                                         std::string_view key,
                                         const TouchOptions& options) {
  auto request = KeyRequest<v1::TouchRequest>(ns, key);
  SetLife(options, request);
  if (options.if_version) request.set_if_version(*options.if_version);
  return request;
}

inline v1::AppendRequest MakeAppendRequest(std::string_view ns,
                                           std::string_view key,
                                           std::string_view value,
                                           const AppendOptions& options) {
  auto request = KeyRequest<v1::AppendRequest>(ns, key);
  request.set_value(std::string(value));
  if (options.ttl) *request.mutable_ttl() = ToProto(*options.ttl);
  SetPrecondition(options, request);
  request.set_touch(options.touch);
  return request;
}

inline v1::CombineRequest MakeCombineRequest(std::string_view ns,
                                             std::string_view key,
                                             Combination combination,
                                             int64_t operand,
                                             const CombineOptions& options) {
  auto request = KeyRequest<v1::CombineRequest>(ns, key);
  if (combination == Combination::kXor) {
    request.set_xor_(operand);
  } else {
    request.set_add(operand);
  }
  request.set_initial(options.initial);
  request.set_remove_if_zero(options.remove_if_zero);
  request.set_touch(options.touch);
  if (options.ttl) *request.mutable_ttl() = ToProto(*options.ttl);
  if (options.if_version) request.set_if_version(*options.if_version);
  return request;
}

inline v1::GatherRequest MakeGatherRequest(std::string_view ns,
                                           std::string_view key,
                                           std::string_view part,
                                           std::string_view value,
                                           const GatherOptions& options) {
  auto request = KeyRequest<v1::GatherRequest>(ns, key);
  request.set_part(std::string(part));
  request.set_value(std::string(value));
  request.set_expected_parts(options.expected_parts);
  for (const std::string& name : options.expected_names) {
    request.add_expected_names(name);
  }
  request.set_touch(options.touch);
  if (options.ttl) *request.mutable_ttl() = ToProto(*options.ttl);
  return request;
}

// The entry that a put or remove returns, or that a get has found.
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

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_DATA_REQUESTS_H_

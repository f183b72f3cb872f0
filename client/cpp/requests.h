// A put's message, for the one at a time and for the many. Internal to the
// client.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "client/cpp/convert.h"
#include "client/cpp/types.h"
#include "timecache/v1/timecache.pb.h"

namespace timecache::inline client {

inline v1::PutRequest MakePutRequest(std::string_view ns, std::string_view key,
                                     std::string_view value,
                                     const PutOptions& options) {
  v1::PutRequest request;
  request.set_namespace_(std::string(ns));
  request.set_key(std::string(key));
  request.set_value(std::string(value));
  if (options.ttl) *request.mutable_ttl() = ToProto(*options.ttl);
  if (options.condition == PutCondition::kIfAbsent) {
    request.set_condition(v1::PUT_CONDITION_IF_ABSENT);
  } else if (options.condition == PutCondition::kIfPresent) {
    request.set_condition(v1::PUT_CONDITION_IF_PRESENT);
  }
  if (options.if_version) request.set_if_version(*options.if_version);
  request.set_return_previous(options.return_previous);
  return request;
}

inline PutResult MakePutResult(v1::PutResponse&& response) {
  PutResult result = {.version = response.version()};
  if (response.has_previous()) {
    result.previous = FromProto(std::move(*response.mutable_previous()));
  }
  return result;
}

}  // namespace timecache::inline client

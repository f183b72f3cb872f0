// Requests and responses as bytes.

#ifndef TIMECACHED_SERVER_RPC_CALL_REQUEST_H_
#define TIMECACHED_SERVER_RPC_CALL_REQUEST_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/edge/response/response_account.h"
#include "server/engine/store/namespace_options.h"

namespace timecache::server {

// The largest request: a value, a key and their overhead.
inline constexpr size_t kMaxRequestBytes =
    static_cast<size_t>(kMaxValueBytesLimit) + (size_t{64} << 10);

// gRPC refuses larger messages itself: with RESOURCE_EXHAUSTED, which suggests
// a retry, and without details. So this is well above kMaxRequestBytes. It does
// not bound memory: gRPC 1.51 checks a message's size once it has all of it.
inline constexpr size_t kMaxMessageBytes = size_t{64} << 20;

// INVALID_ARGUMENT for a request above kMaxRequestBytes: INVALID_FIELD about
// `field`, if that can make it so large, else REQUEST_TOO_LARGE.
absl::Status CheckRequestSize(const grpc::ByteBuffer& bytes,
                              absl::string_view field = "");

// INVALID_ARGUMENT (MALFORMED_REQUEST) for bytes that do not parse as `type`,
// by its full name.
absl::Status MalformedRequest(absl::string_view type);

// Parses a request, or returns an error as above. gRPC's own parsing ends such
// a call with UNIMPLEMENTED.
absl::Status ParseRequest(const grpc::ByteBuffer& bytes,
                          google::protobuf::MessageLite* request,
                          absl::string_view large_field = "");

// The same, and frees the bytes, which gRPC would keep as long as the call, and
// unknown fields, unless the request is small: gRPC has one bound for the
// requests of all clients, and a stream may stay open for ever.
absl::Status TakeRequest(const grpc::ByteBuffer& bytes,
                         google::protobuf::Message* request,
                         absl::string_view large_field = "");

// The answer as gRPC sends it, counted in `account`, unless that is null, where
// `small_bytes` is as ResponseAccount::NewSlice's.
grpc::ByteBuffer ToBytes(const google::protobuf::MessageLite& message,
                         ResponseAccount* account = nullptr,
                         int64_t small_bytes = 0);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_REQUEST_H_

// The encoding of an ExecuteResponse, and of one operation's response.

#ifndef TIMECACHED_SERVER_RPC_DATA_BATCH_RESPONSE_H_
#define TIMECACHED_SERVER_RPC_DATA_BATCH_RESPONSE_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/edge/response/response_account.h"
#include "server/engine/store/operation.h"
#include "server/rpc/call/refusal_count.h"
#include "server/rpc/data/batch_request.h"

namespace timecache::server {

// The ExecuteResponse of a batch whose operations() had these results, written
// into one buffer, byte for byte as the generated serializer would.
// Thread-safe. `*refused_by_limits`, unless null, counts the results that a
// limit refused, and `account` the buffer, with `small_bytes` as its NewSlice.
grpc::ByteBuffer EncodeResponse(const BatchRequest& request,
                                absl::Span<const Result> results,
                                RefusalCount* refused_by_limits = nullptr,
                                ResponseAccount* account = nullptr,
                                int64_t small_bytes = 0);

// The response of an operation that is called by itself: a PutResponse and so
// on. Nothing is owned.
struct OperationAnswer {
  OpKind kind = OpKind::kPut;
  absl::string_view key;
  const Result* result = nullptr;
};

// As the ToBytes of generated messages. Thread-safe.
grpc::ByteBuffer ToBytes(const OperationAnswer& answer,
                         ResponseAccount* account);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_DATA_BATCH_RESPONSE_H_

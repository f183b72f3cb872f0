// Answers calls that complete asynchronously.

#ifndef TIMECACHED_SERVER_RPC_CALL_ANSWER_H_
#define TIMECACHED_SERVER_RPC_CALL_ANSWER_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/method.h"
#include "server/rpc/call/call.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/unary_call.h"

namespace timecache::server {

// Reads the request and calls `handle` with a std::shared_ptr<UnaryCall>. An
// error that `handle` returns ends the call. After OK the store's completion,
// which shares the call, ends it, possibly on another thread.
template <typename Request, typename Response, typename Handle>
grpc::ServerUnaryReactor* Answer(const CallGate& gate, const Method& method,
                                 grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* bytes,
                                 grpc::ByteBuffer* answer,
                                 Call::FieldPath field_path,
                                 const Handle& handle) {
  const auto unary = std::make_shared<UnaryCall<Request, Response>>(
      gate, method, context, bytes, answer, field_path);
  grpc::ServerUnaryReactor* const reactor = unary->reactor();
  absl::Status status = unary->Read();
  if (status.ok()) status = unary->CheckShare();
  if (status.ok()) status = handle(unary);
  if (!status.ok()) unary->Finish(status);
  return reactor;
}

// The store's completion of such a call: ends it with the store's error, or,
// once `answer` has processed the store's result, with OK.
template <typename Unary, typename Answer>
auto FinishWith(std::shared_ptr<Unary> unary, Answer answer) {
  return [unary = std::move(unary),
          answer = std::move(answer)](const auto& found) {
    if (found.ok()) answer(*found);
    unary->Finish(found.status());
  };
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_ANSWER_H_

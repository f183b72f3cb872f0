// How administration answers a call.

#ifndef TIMECACHED_SERVER_SERVICE_ADMIN_ANSWER_H_
#define TIMECACHED_SERVER_SERVICE_ADMIN_ANSWER_H_

#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"
#include "server/service/call/call.h"
#include "server/service/call/call_gate.h"
#include "server/service/call/method.h"
#include "server/service/call/unary_call.h"

namespace timecache {

// Inline, as such calls are rare: `handle` gets the call, the request and the
// response.
template <typename Request, typename Response, typename Handle>
grpc::ServerUnaryReactor* Answer(const CallGate& gate, const Method& method,
                                 grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* bytes,
                                 grpc::ByteBuffer* answer,
                                 Call::FieldPath field_path,
                                 const Handle& handle) {
  UnaryCall<Request, Response> unary(gate, method, context, bytes, answer);
  absl::Status status = unary.Read();
  if (status.ok()) status = unary.CheckShare();
  if (status.ok()) {
    status = handle(&unary.call(), unary.request(), &unary.response());
  }
  return unary.Finish(status, field_path);
}

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_ADMIN_ANSWER_H_

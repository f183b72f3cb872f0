// Answers what an operator asks of a running server: who calls, from where, and
// what took long.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_OPERATOR_CALLS_H_
#define TIMECACHED_SERVER_RPC_ADMIN_OPERATOR_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/edge/connection/open_connections.h"
#include "server/rpc/call/call_gate.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// What the answers are made of. Thread-safe functions.
struct OperatorSource {
  std::function<int64_t()> now_us;
  // As OpenConnections::List and Close.
  std::function<std::vector<OpenConnections::Listed>(uint64_t after,
                                                     size_t most)>
      list_connections;
  std::function<bool(uint64_t id)> close_connection;
  // Null: there are none.
  std::function<void(v1::ListSlowCallsResponse* calls)> describe_slow_calls;
};

// Each answers one call of the method that it is named by, as a gRPC handler
// does. `gate` and `source` are not owned, and must outlive the call.
grpc::ServerUnaryReactor* AnswerWhoAmI(const CallGate& gate,
                                       const OperatorSource& source,
                                       grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response);
grpc::ServerUnaryReactor* AnswerListConnections(
    const CallGate& gate, const OperatorSource& source,
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response);
grpc::ServerUnaryReactor* AnswerCloseConnection(
    const CallGate& gate, const OperatorSource& source,
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response);
grpc::ServerUnaryReactor* AnswerListSlowCalls(
    const CallGate& gate, const OperatorSource& source,
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_OPERATOR_CALLS_H_

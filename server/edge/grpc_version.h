// Workarounds for gRPC 1.51, from grpc_1_51/; with a newer one
// (-DTIMECACHED_GRPC_1_51=OFF), gRPC's own behaviour.

#ifndef TIMECACHED_SERVER_EDGE_GRPC_VERSION_H_
#define TIMECACHED_SERVER_EDGE_GRPC_VERSION_H_

#ifndef TIMECACHED_NEWER_GRPC

#include "server/edge/grpc_1_51/keep_awake.h"
#include "server/edge/grpc_1_51/timed_shutdown.h"
#include "server/edge/grpc_1_51/tls_resumption.h"

#else

#include <chrono>
#include <functional>

#include "grpcpp/server.h"

namespace timecache::server {

class KeepAwake {
 public:
  explicit KeepAwake(grpc::Server* /*server*/) {}
};

inline bool ShutDown(
    grpc::Server* server, std::chrono::steady_clock::time_point deadline,
    const std::function<void()>& /*meanwhile*/ = [] {}) {
  const auto left = deadline - std::chrono::steady_clock::now();
  server->Shutdown(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(left));
  return std::chrono::steady_clock::now() < deadline;
}

inline void DisableTlsResumption() {}

}  // namespace timecache::server

#endif

#endif  // TIMECACHED_SERVER_EDGE_GRPC_VERSION_H_

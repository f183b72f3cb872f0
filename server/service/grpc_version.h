// What only gRPC 1.51 needs, from grpc_1_51/; built for a newer one
// (-DTIMECACHED_GRPC_1_51=OFF), what that does by itself.

#ifndef TIMECACHED_SERVER_SERVICE_GRPC_VERSION_H_
#define TIMECACHED_SERVER_SERVICE_GRPC_VERSION_H_

#ifndef TIMECACHED_NEWER_GRPC

#include "server/service/grpc_1_51/keep_awake.h"
#include "server/service/grpc_1_51/timed_shutdown.h"
#include "server/service/grpc_1_51/tls_resumption.h"

#else

#include <grpcpp/server.h>

#include <chrono>
#include <functional>

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

#endif  // TIMECACHED_SERVER_SERVICE_GRPC_VERSION_H_

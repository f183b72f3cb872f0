// Compiled for gRPC 1.51, and never linked: that with TIMECACHED_GRPC_1_51=OFF
// the service needs nothing of server/service/grpc_1_51.
#define TIMECACHED_NEWER_GRPC
#include "server/service/server.h"

namespace timecache::server {

bool UseWhatReplacesTheWorkarounds(grpc::Server* server) {
  DisableTlsResumption();
  const KeepAwake awake(server);
  return ShutDown(server, std::chrono::steady_clock::now());
}

}  // namespace timecache::server

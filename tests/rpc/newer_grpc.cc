// Compiled, and never linked: that what stands in for the workarounds with
// TIMECACHED_GRPC_1_51=OFF is as its callers use it. With gRPC 1.51's headers,
// as there is no newer one here.
#define TIMECACHED_NEWER_GRPC
#include "server/rpc/server.h"

namespace timecache::server {

bool UseWhatReplacesTheWorkarounds(grpc::Server* server) {
  DisableTlsResumption();
  const KeepAwake awake(server);
  return ShutDown(server, std::chrono::steady_clock::now());
}

}  // namespace timecache::server

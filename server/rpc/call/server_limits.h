// Per-client resource limits, enforced through gRPC.

#ifndef TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_
#define TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_

#include <cstdint>

#include "grpcpp/grpcpp.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Applies the limits of calls, metadata, the age of connections and pings in
// `limits`; every field of these is set. `grpc_memory_bytes`: for connections
// (about 20 KB each) and for requests that gRPC has not delivered yet; beyond
// it idle connections get a GOAWAY and are closed. 0: no limit.
void ApplyLimits(const config::v1::ServerLimits& limits,
                 int64_t grpc_memory_bytes, grpc::ServerBuilder* builder);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_

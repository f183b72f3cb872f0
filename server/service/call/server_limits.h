// What clients may cost the server, as far as gRPC holds them to it.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_SERVER_LIMITS_H_
#define TIMECACHED_SERVER_SERVICE_CALL_SERVER_LIMITS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Sets what `limits` say of calls, metadata, the age of connections and pings;
// every field of these is set. `grpc_memory_bytes`: for connections (about 20
// KB each) and for what gRPC reads and has not handed over; beyond it idle
// connections are told to go away, and closed. 0: no limit.
void ApplyLimits(const config::v1::ServerLimits& limits,
                 int64_t grpc_memory_bytes, grpc::ServerBuilder* builder);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CALL_SERVER_LIMITS_H_

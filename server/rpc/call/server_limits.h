// Per-client resource limits, enforced through gRPC.

#ifndef TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_
#define TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The limits of a connection that have no option.
struct ConnectionLimits {
  // Of one call's headers.
  int max_metadata_bytes = 8 << 10;
  // How long streams go on once their connection has reached max_connection_age.
  absl::Duration age_grace = absl::Minutes(1);
  // A client that is silent for so long is pinged, and disconnected unless it
  // answers in time.
  absl::Duration keepalive_interval = absl::Minutes(1);
  absl::Duration keepalive_timeout = absl::Seconds(20);
  // A client that pings more often is disconnected (ENHANCE_YOUR_CALM).
  absl::Duration min_ping_interval = absl::Seconds(10);
};

// Most streams of reflection at once; one more ends with RESOURCE_EXHAUSTED.
// Each has a thread of gRPC's.
inline constexpr int kMaxReflectionStreams = 8;

// Applies max_calls_per_connection and max_connection_age of `limits`, and
// `connection`. `grpc_memory_bytes`: for connections (about 20 KB each) and for
// requests that gRPC has not delivered yet; beyond it idle connections get a
// GOAWAY and are closed. 0: no limit.
void ApplyLimits(const config::v1::ServerLimits& limits,
                 const ConnectionLimits& connection, int64_t grpc_memory_bytes,
                 grpc::ServerBuilder* builder);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_

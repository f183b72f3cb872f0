// Per-client resource limits, enforced through gRPC.

#ifndef TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_
#define TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_

#include <chrono>
#include <cstdint>

#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The limits of a connection that have no option.
struct ConnectionLimits {
  // Of one call's headers.
  int max_metadata_bytes = 8 << 10;
  // How long streams go on once their connection is old: see OldAt.
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

// What gRPC adds to max_connection_age, or takes off, of each connection.
inline constexpr double kAgeJitter = 0.1;

// When the client of a connection has been asked to connect anew, so that its next
// stream comes elsewhere; `max_age` is max_connection_age, and not 0. Its streams are
// cut age_grace later, or after.
inline std::chrono::steady_clock::time_point OldAt(
    std::chrono::steady_clock::time_point opened_at, absl::Duration max_age) {
  return opened_at + absl::ToChronoMicroseconds((1 + kAgeJitter) * max_age);
}

// Applies max_calls_per_connection and max_connection_age of `limits`, and
// `connection`. `grpc_memory_bytes`: for connections (about 20 KB each) and for
// requests that gRPC has not delivered yet; beyond it idle connections get a
// GOAWAY and are closed. 0: no limit.
void ApplyLimits(const config::v1::ServerLimits& limits,
                 const ConnectionLimits& connection, int64_t grpc_memory_bytes,
                 grpc::ServerBuilder* builder);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_SERVER_LIMITS_H_

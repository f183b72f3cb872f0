// What clients may cost the server, as gRPC can hold them to it.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_SERVER_LIMITS_H_
#define TIMECACHED_SERVER_SERVICE_CALL_SERVER_LIMITS_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>

#include "absl/time/time.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Meanings, ranges and defaults are those of ServerLimits in
// proto/timecache/config/v1/config.proto.
struct ServerLimits {
  int max_connections = 10'000;
  int max_new_connections_per_second = 100;
  int max_calls_per_connection = 1'000;
  int max_metadata_bytes = 8 << 10;
  // Zero: connections grow as old as they like.
  absl::Duration max_connection_age = absl::ZeroDuration();
  absl::Duration connection_age_grace = absl::Minutes(1);
  absl::Duration keepalive_interval = absl::Minutes(1);
  absl::Duration keepalive_timeout = absl::Seconds(20);
  absl::Duration min_ping_interval = absl::Seconds(10);
  absl::Duration max_call_duration = absl::Minutes(1);
  // Of responses that clients have not read; 0: no bound.
  int64_t max_response_bytes = 0;
  absl::Duration response_timeout = absl::Seconds(30);
  // For connections (about 20 KB each) and for what gRPC reads and has not
  // handed over: beyond it idle connections are told to go away, and closed. 0:
  // no limit.
  int64_t grpc_memory_bytes = 0;

  // Of a complete and valid configuration. (grpc_memory_bytes and
  // max_response_bytes stay: they follow from the memory that there is.)
  static ServerLimits From(const config::v1::ServerLimits& config);

  // All but max_connections, max_new_connections_per_second, max_call_duration
  // and what is said of responses, which others hold clients to.
  void Apply(grpc::ServerBuilder* builder) const;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CALL_SERVER_LIMITS_H_

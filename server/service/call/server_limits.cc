#include "server/service/call/server_limits.h"

#include <grpcpp/resource_quota.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "server/service/call/convert.h"
#include "server/service/call/request.h"

namespace timecache::server {
namespace {

// How long a new connection may take until it speaks HTTP/2, TLS included. gRPC
// gives it 2 min, for which whoever says nothing holds one of max_connections.
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(20);

// A client that pings more often than it may is warned so many times.
constexpr int kMaxPingStrikes = 2;

// gRPC counts milliseconds in an int: 24 days.
int Millis(absl::Duration duration) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(absl::ToInt64Milliseconds(duration), kMost));
}

}  // namespace

ServerLimits ServerLimits::From(const config::v1::ServerLimits& config) {
  ServerLimits limits;
  limits.max_connections = static_cast<int>(config.max_connections());
  limits.max_new_connections_per_second =
      static_cast<int>(config.max_new_connections_per_second());
  limits.max_calls_per_connection =
      static_cast<int>(config.max_calls_per_connection());
  limits.max_metadata_bytes = static_cast<int>(config.max_metadata_bytes());
  limits.max_connection_age = ToDuration(config.max_connection_age());
  limits.connection_age_grace = ToDuration(config.connection_age_grace());
  limits.keepalive_interval = ToDuration(config.keepalive_interval());
  limits.keepalive_timeout = ToDuration(config.keepalive_timeout());
  limits.min_ping_interval = ToDuration(config.min_ping_interval());
  limits.max_call_duration = ToDuration(config.max_call_duration());
  limits.response_timeout = ToDuration(config.response_timeout());
  return limits;
}

void ServerLimits::Apply(grpc::ServerBuilder* builder) const {
  builder->SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  const auto set = [builder](const char* name, int value) {
    builder->AddChannelArgument(name, value);
  };
  // gRPC 1.51 looks at a message's size only when it has unpacked all of it, a
  // thousand times what came: a call that brings a compressed one ends with
  // UNIMPLEMENTED.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  set(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Millis(kHandshakeTimeout));
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS, max_calls_per_connection);
  set(GRPC_ARG_MAX_METADATA_SIZE, max_metadata_bytes);
  if (max_connection_age > absl::ZeroDuration()) {
    set(GRPC_ARG_MAX_CONNECTION_AGE_MS, Millis(max_connection_age));
    set(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, Millis(connection_age_grace));
  }
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Millis(keepalive_interval));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(keepalive_timeout));
  // A connection without a call is pinged, too, and may ping: else gRPC takes
  // more than one ping in 2 h there for an attack.
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // A watch may be silent for long: pings go on all the same.
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Millis(min_ping_interval));
  set(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kMaxPingStrikes);
  if (grpc_memory_bytes > 0) {
    grpc::ResourceQuota quota("timecached");
    quota.Resize(static_cast<size_t>(grpc_memory_bytes));
    builder->SetResourceQuota(quota);
  }
}

}  // namespace timecache::server

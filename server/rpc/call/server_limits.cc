#include "server/rpc/call/server_limits.h"

#include <cstddef>

#include "absl/time/time.h"
#include "grpcpp/resource_quota.h"
#include "server/api/proto_time.h"
#include "server/rpc/call/request.h"

namespace timecache::server {
namespace {

// How long a new connection may take until HTTP/2 is established, including
// TLS. gRPC's default is 2 min, during which a silent client holds one of
// max_connections.
constexpr absl::Duration kHandshakeTimeout = absl::Seconds(20);

// A client that pings too often gets this many warnings.
constexpr int kMaxPingStrikes = 2;

int Millis(absl::Duration duration) {
  return static_cast<int>(absl::ToInt64Milliseconds(duration));
}

}  // namespace

void ApplyLimits(const config::v1::ServerLimits& limits,
                 const ConnectionLimits& connection, int64_t grpc_memory_bytes,
                 grpc::ServerBuilder* builder) {
  builder->SetMaxReceiveMessageSize(static_cast<int>(kMaxMessageBytes));
  const auto set = [builder](const char* name, int value) {
    builder->AddChannelArgument(name, value);
  };
  // gRPC 1.51 checks a message's size only after decompressing all of it, which
  // may be a thousand times the received size: a call with a compressed message
  // ends with UNIMPLEMENTED.
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder->SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  set(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  set(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, Millis(kHandshakeTimeout));
  set(GRPC_ARG_MAX_CONCURRENT_STREAMS,
      static_cast<int>(limits.max_calls_per_connection()));
  set(GRPC_ARG_MAX_METADATA_SIZE, connection.max_metadata_bytes);
  const absl::Duration age = ToDuration(limits.max_connection_age());
  if (age > absl::ZeroDuration()) {
    set(GRPC_ARG_MAX_CONNECTION_AGE_MS, Millis(age));
    // Of one that is asked soonest: until OldAt, and age_grace from then on.
    set(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
        Millis(2 * kAgeJitter * age + connection.age_grace));
  }
  set(GRPC_ARG_KEEPALIVE_TIME_MS, Millis(connection.keepalive_interval));
  set(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Millis(connection.keepalive_timeout));
  // A connection without a call is pinged, too, and may ping: otherwise gRPC
  // treats more than one ping in 2 h there as an attack.
  set(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  // A watch may be silent for long: pings continue nevertheless.
  set(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  set(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
      Millis(connection.min_ping_interval));
  set(GRPC_ARG_HTTP2_MAX_PING_STRIKES, kMaxPingStrikes);
  grpc::ResourceQuota quota("timecached");
  if (grpc_memory_bytes > 0) {
    quota.Resize(static_cast<size_t>(grpc_memory_bytes));
  }
  // Reflection alone has threads for its calls, and one that takes them.
  quota.SetMaxThreads(kMaxReflectionStreams + 1);
  builder->SetResourceQuota(quota);
}

}  // namespace timecache::server

#include "server/rpc/admin/health_server.h"

#include <chrono>

#include "server/edge/grpc_version.h"
#include "server/rpc/admin/reflection.h"
#include "server/rpc/call/server_limits.h"

namespace timecache::server {

HealthServer::HealthServer()
    : acceptor_({.max_connections = kMaxConnections,
                 .pace = kMaxNewConnectionsPerSecond,
                 .max_unproven_bytes = kGrpcMemoryBytes / 2}),
      responses_({.max_bytes = kMaxResponseBytes,
                  .timeout = std::chrono::seconds(kResponseTimeoutSeconds),
                  .max_calls_per_connection = kMaxCallsPerConnection,
                  .end_connection = [this](const std::string& peer) {
                    acceptor_.Cut(PeerEndpoint::OfGrpcPeer(peer));
                  }}) {
  health_service_.SetServing(false);
}

absl::Status HealthServer::Start(const std::string& address) {
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  config::v1::ServerLimits limits;
  limits.set_max_calls_per_connection(kMaxCallsPerConnection);
  ApplyLimits(limits, {.max_metadata_bytes = kMaxMetadataBytes},
              kGrpcMemoryBytes, &builder);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  SetReflection(false, &builder);
  builder.RegisterService(&health_service_);
  builder.RegisterCallbackGenericService(&unknown_service_);
  const absl::Status status =
      acceptor_.Listen(address, grpc::InsecureServerCredentials(), &builder);
  if (!status.ok()) return status;
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) {
    return absl::UnavailableError("cannot start the gRPC server for health");
  }
  acceptor_.Start();
  responses_.Start();
  return absl::OkStatus();
}

void HealthServer::Stop() {
  acceptor_.Stop();
  if (server_ == nullptr) return;
  responses_.Stop();
  health_service_.EndWatches();
  ShutDown(server_.get(), std::chrono::steady_clock::now());
  server_->Wait();
  server_.reset();
}

}  // namespace timecache::server

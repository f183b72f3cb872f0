#include "server/service/admin/health_server.h"

#include <chrono>

#include "server/service/call/server_limits.h"
#include "server/service/grpc_version.h"

namespace timecache::server {

HealthServer::HealthServer()
    : acceptor_(kMaxConnections, kMaxNewConnectionsPerSecond) {}

absl::Status HealthServer::Start(const std::string& address) {
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  ServerLimits limits;
  limits.max_connections = kMaxConnections;
  limits.max_calls_per_connection = kMaxCallsPerConnection;
  limits.max_metadata_bytes = kMaxMetadataBytes;
  limits.Apply(&builder);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  builder.RegisterService(&health_service_);
  builder.RegisterCallbackGenericService(&unknown_service_);
  const absl::Status status =
      acceptor_.Listen(address, grpc::InsecureServerCredentials(), &builder);
  if (!status.ok()) return status;
  server_ = builder.BuildAndStart();
  if (server_ == nullptr)
    return absl::UnavailableError("cannot start the gRPC server for health");
  acceptor_.Start();
  return absl::OkStatus();
}

void HealthServer::SetNotServing() { health_service_.SetNotServing(); }

void HealthServer::Stop() {
  acceptor_.Stop();
  if (server_ == nullptr) return;
  health_service_.EndWatches();
  ShutDown(server_.get(), std::chrono::steady_clock::now());
  server_->Wait();
  server_.reset();
}

}  // namespace timecache::server

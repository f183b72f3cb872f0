#include "server/service/health_server.h"

#include <grpc/support/time.h>
#include <grpcpp/health_check_service_interface.h>

#include "server/service/server_limits.h"

namespace timecache {

HealthServer::HealthServer() : acceptor_(kMaxConnections) {}

HealthServer::~HealthServer() {
  acceptor_.Stop();
  if (server_ == nullptr) return;
  // A watch has no end of its own.
  server_->Shutdown(gpr_now(GPR_CLOCK_MONOTONIC));
  server_->Wait();
}

absl::Status HealthServer::Start(const std::string& address) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  ServerLimits limits;
  limits.max_connections = kMaxConnections;
  limits.max_calls_per_connection = kMaxCallsPerConnection;
  limits.max_metadata_bytes = kMaxMetadataBytes;
  limits.Apply(&builder);
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
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

void HealthServer::SetNotServing() {
  server_->GetHealthCheckService()->SetServingStatus(false);
}

}  // namespace timecache

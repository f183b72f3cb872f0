// Health for probes, on a port of its own.

#ifndef TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVER_H_
#define TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "server/edge/connection/connection_acceptor.h"
#include "server/rpc/admin/health_service.h"
#include "server/rpc/admin/unknown_service.h"

namespace timecache::server {

// Serves grpc.health.v1.Health and nothing else, in plain text, for probes that
// have no certificate. Start, SetServing, Stop and the destructor are called by
// one thread, what counts by any. Costs one more gRPC server, which shares
// the threads of the first.
class HealthServer {
 public:
  static constexpr int kMaxConnections = 128;
  // Of one address.
  static constexpr int kMaxNewConnectionsPerSecond = 20;
  static constexpr int kMaxCallsPerConnection = 16;
  static constexpr int kMaxMetadataBytes = 4 << 10;
  static constexpr int kMaxRequestBytes = 1 << 10;
  // Limits of gRPC's memory for requests, and of unread responses: those of 256
  // calls.
  static constexpr int64_t kGrpcMemoryBytes = int64_t{64} << 20;
  static constexpr int64_t kMaxResponseBytes = int64_t{4} << 20;
  static constexpr int kResponseTimeoutSeconds = 10;

  HealthServer();
  ~HealthServer() { Stop(); }
  HealthServer(const HealthServer&) = delete;
  HealthServer& operator=(const HealthServer&) = delete;

  // Says NOT_SERVING from now on. Errors as ConnectionAcceptor::Listen.
  absl::Status Start(const std::string& address);
  void SetServing(bool serving) { health_service_.SetServing(serving); }
  // Ends open watches of health, and stops serving.
  void Stop();

  // With the port that was taken.
  std::string address() const { return acceptor_.addresses().front(); }

 private:
  ConnectionAcceptor acceptor_;
  ResponseLedger responses_;
  CountedCalls counted_calls_{&responses_};
  HealthService health_service_{&acceptor_.guard(), &responses_,
                                &counted_calls_};
  UnknownService unknown_service_{&acceptor_.guard()};
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_ADMIN_HEALTH_SERVER_H_

// The gRPC services of a server, created and registered together.

#ifndef TIMECACHED_SERVER_RPC_SERVICES_H_
#define TIMECACHED_SERVER_RPC_SERVICES_H_

#include <memory>

#include "grpcpp/grpcpp.h"
#include "server/edge/connection/peer_guard.h"
#include "server/edge/response/open_streams.h"
#include "server/engine/store/store.h"
#include "server/rpc/admin/backup_stream.h"
#include "server/rpc/admin/group_service.h"
#include "server/rpc/admin/health_service.h"
#include "server/rpc/admin/namespace_service.h"
#include "server/rpc/admin/server_service.h"
#include "server/rpc/admin/unknown_service.h"
#include "server/rpc/admin/virtual_clock_service.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/counted_calls.h"
#include "server/rpc/call/fair_executor.h"
#include "server/rpc/data/time_cache_service.h"
#include "server/rpc/peer/peer_service.h"
#include "server/rpc/server_options.h"
#include "server/rpc/watch/watch_hub.h"

namespace timecache::server {

// Thread-safe but for AddTo. Its header includes those of all services, which
// are slow to compile: for server.cc alone.
class Services {
 public:
  // What they work on. None is owned; all must outlive the services.
  struct Parts {
    Store* store;
    CallGate* gate;
    PeerGuard* guard;
    WatchHub* hub;
    OpenStreams* streams;
    ResponseLedger* ledger;
    CountedCalls* counted_calls;
    CallTails* tails;
    OperatorSource operators;
  };

  Services(const ServerOptions& options, const Parts& parts,
           ServerService::DescribeServer describe_server);
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  // They must outlive the server that is built.
  void AddTo(grpc::ServerBuilder* builder);

  HealthService& health() { return health_; }

 private:
  HealthService health_;
  FairExecutor executor_;
  Backups backups_;
  // Reads for them, which may wait for a disk; null without a journal.
  const std::unique_ptr<FairExecutor> backup_executor_;
  TimeCacheService time_cache_;
  NamespaceService namespaces_;
  GroupService groups_;
  ServerService server_;
  std::unique_ptr<VirtualClockService> virtual_clock_;
  std::unique_ptr<PeerService> peers_;
  UnknownService unknown_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_SERVICES_H_

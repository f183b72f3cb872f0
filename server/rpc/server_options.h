// A server's options and dependencies.

#ifndef TIMECACHED_SERVER_RPC_SERVER_OPTIONS_H_
#define TIMECACHED_SERVER_RPC_SERVER_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "server/api/access.h"
#include "server/base/clock.h"
#include "server/engine/store/store.h"
#include "server/rpc/admin/backup_source.h"
#include "server/rpc/admin/change.h"
#include "server/rpc/admin/cluster_source.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/server_limits.h"
#include "timecache/config/v1/config.pb.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

struct ServerOptions {
  // host:port or unix:/path, at least one.
  std::vector<std::string> addresses;
  // The credentials of each; null or missing: plain text.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials;
  // The plain-text address that serves only health. Empty: none.
  std::string health_address;
  // With every field set but max_response_bytes, which is 0 then: see
  // DefaultConfig in server/main/config/config.h.
  config::v1::ServerLimits limits;
  // See ApplyLimits.
  int64_t grpc_memory_bytes = 0;
  ConnectionLimits connection_limits;
  // Set: VirtualClockService controls it. Not owned; all other parts use the
  // same one.
  ManualClock* virtual_clock = nullptr;
  // Of a virtual clock, with which it must be set: waits until all that is due at its
  // time has been published.
  std::function<void()> flush;
  // The rules for calls; null: every caller has all permissions. Not owned, nor
  // are the observers of calls.
  Access* access = nullptr;
  std::vector<CallObserver*> call_observers;
  // Serve gRPC's server reflection, unless there are rules.
  bool reflection = true;
  // Of a namespace that is created without num_partitions.
  int default_partitions = 1;
  // Observes changes of namespaces and groups. Never null.
  AdminObserver observer = IgnoreAdminChange;
  // Whether calls of clients are served: see CallGate. Null: always.
  std::function<absl::Status()> check_service;
  // The content of GetServer.
  std::string version;
  // Returns the journal's status; null: there is none.
  std::function<void(v1::JournalStatus* journal)> describe_journal;
  // Fills it; null: there are no slow calls.
  std::function<void(v1::ListSlowCallsResponse* calls)> describe_slow_calls;
  // Of the journal; null without one.
  BackupSource backup_source;
  // Null unless the server is a node of a cluster.
  ClusterSource cluster;
  // What other nodes reach by PeerService: this node's own; not owned. Null: they
  // do not.
  Store* peer_store = nullptr;
  // What they reach with calls about whole namespaces, whose home this node serves: see
  // server/peer/home_router.h; not owned. Null: nothing.
  Store* peer_whole_store = nullptr;
  // The principal that they must be, where there are rules.
  std::string peer_principal;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_SERVER_OPTIONS_H_

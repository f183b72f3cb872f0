// The gRPC server: the services on their listeners, health, reflection, and the
// drain.

#ifndef TIMECACHED_SERVER_RPC_SERVER_H_
#define TIMECACHED_SERVER_RPC_SERVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/grpcpp.h"
#include "server/base/clock.h"
#include "server/edge/connection/connection_acceptor.h"
#include "server/edge/grpc_version.h"
#include "server/edge/response/open_streams.h"
#include "server/edge/response/response_ledger.h"
#include "server/engine/store/store.h"
#include "server/rpc/admin/operator_calls.h"
#include "server/rpc/call/call_gate.h"
#include "server/rpc/call/call_tails.h"
#include "server/rpc/call/counted_calls.h"
#include "server/rpc/server_options.h"
#include "server/rpc/watch/watch_hub.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

class HealthServer;
class Services;

// The outcome of a drain.
struct DrainReport {
  // Streams that were open at its start.
  size_t watchers = 0;
  size_t pipelines = 0;
  // Of these, ended at the end of the grace period: their clients did not read.
  size_t watchers_cut = 0;
  size_t pipelines_cut = 0;
  // All calls finished; else the others were cancelled.
  bool in_time = false;
};

// Serves from Start to Drain. StartHealth, Start and Drain are called once, by
// one thread.
class Server {
 public:
  // Neither is owned; both must outlive the server.
  Server(Store* store, const Clock* clock, ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Serves health on its own address, if there is one, as NOT_SERVING: for work
  // before Start. Errors as Start.
  absl::Status StartHealth();
  // Listens on all addresses, or on none: UNAVAILABLE that says which address
  // failed and why. StartHealth, if it was not called.
  absl::Status Start();

  // The addresses on which it listens, with the ports taken for port 0.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // Empty without a listener for health.
  const std::string& health_address() const { return health_address_; }

  // A channel to it, once it serves, without a socket.
  std::shared_ptr<grpc::Channel> InProcessChannel() {
    return server_->InProcessChannel(grpc::ChannelArguments());
  }

  // Connections that are open, and that were refused. From any thread.
  size_t connections() const { return acceptor_.open(); }
  uint64_t refused_connections() const { return acceptor_.refused(); }
  // The pacing of connections, and the handling of calls without credentials,
  // on the listeners for clients.
  const ConnectionPacer& pacer() const { return acceptor_.pacer(); }
  const PeerGuard& guard() const { return acceptor_.guard(); }
  // Responses that clients have not read. From any thread.
  ResponseLedger::Statistics responses() const {
    return responses_.GetStatistics();
  }

  // From any thread, while it serves. Existing content above the limits stays,
  // and no more is accepted.
  void SetMaxWatchers(int64_t max_watchers) { hub_.SetMax(max_watchers); }

  // For a node of a cluster, from Start on; thread-safe.

  // What health reports: NOT_SERVING at first, SERVING once it owns. Without
  // effect after SetNotServing.
  void SetHealth(bool serving);
  // Every open stream checks now whether it may go on, as it otherwise does at
  // its next message. After the end of the node's service (see
  // ClusterSource::check_service): watches end with UNAVAILABLE (NOT_OWNER),
  // those with a message in flight once it is read, a second later at most;
  // pipelines answer what they have read and end with the same.
  void CheckStreams();

  // From now on health reports NOT_SERVING and GetServer draining; everything
  // else continues.
  void SetNotServing();

  // In this order: health reports NOT_SERVING; watchers get their last
  // watermark and end with OK; pipelines answer what they have read and end
  // with UNAVAILABLE; new calls are refused with UNAVAILABLE (DRAINING, or
  // NOT_OWNER by a cluster's node that does not serve), for a second if there
  // were streams, so that their clients can read their ends, and else for a
  // tenth; watches of health end; connections are closed as calls in flight
  // finish, or if their clients do not respond within a second.
  // Calls not done after `grace_us` are cancelled.
  // Probes of the listener for health are answered to the end.
  DrainReport Drain(int64_t grace_us);

 private:
  void Describe(v1::GetServerResponse* server) const;
  void DescribeLimits(v1::GetServerResponse* server) const;
  OperatorSource MakeOperatorSource();

  ServerOptions options_;
  const Clock* const clock_;
  Store* const store_;
  int64_t start_us_ = 0;
  std::atomic<bool> draining_{false};
  ConnectionAcceptor acceptor_;
  ResponseLedger responses_;
  CountedCalls counted_calls_{&responses_};
  CallGate gate_;
  WatchHub hub_;
  OpenStreams streams_;
  CallTails tails_;
  const std::unique_ptr<Services> services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HealthServer> health_server_;
  std::unique_ptr<KeepAwake> keep_awake_;
  std::vector<std::string> addresses_;
  std::string health_address_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_SERVER_H_

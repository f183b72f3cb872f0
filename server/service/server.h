// The gRPC server: the services on their listeners, health, reflection, and the
// end.

#ifndef TIMECACHED_SERVER_SERVICE_SERVER_H_
#define TIMECACHED_SERVER_SERVICE_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/clock.h"
#include "server/engine/store.h"
#include "server/service/admin/change.h"
#include "server/service/admin/group_service.h"
#include "server/service/admin/health_server.h"
#include "server/service/admin/health_service.h"
#include "server/service/admin/namespace_service.h"
#include "server/service/admin/reflection_service.h"
#include "server/service/admin/server_service.h"
#include "server/service/admin/unknown_service.h"
#include "server/service/admin/virtual_clock_service.h"
#include "server/service/call/access.h"
#include "server/service/call/call_gate.h"
#include "server/service/call/counted_calls.h"
#include "server/service/call/open_streams.h"
#include "server/service/connection/connection_acceptor.h"
#include "server/service/data/time_cache_service.h"
#include "server/service/grpc_version.h"
#include "server/service/response/response_ledger.h"
#include "server/service/watch/watch_hub.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

struct ServerOptions {
  // host:port or unix:/path, at least one.
  std::vector<std::string> addresses;
  // How each of them speaks; null, and where there are fewer: plain text.
  std::vector<std::shared_ptr<grpc::ServerCredentials>> credentials;
  // Where health alone is served, in plain text. Empty: nowhere.
  std::string health_address;
  // With every field set but max_response_bytes, which is 0 then: see
  // DefaultConfig in server/config/config.h.
  config::v1::ServerLimits limits;
  // See ApplyLimits.
  int64_t grpc_memory_bytes = 0;
  // Set: VirtualClockService is served on it. Not owned; the same that
  // everything else uses.
  ManualClock* virtual_clock = nullptr;
  // Of a virtual clock: waits until all that is due at its time has been
  // published.
  std::function<void()> flush;
  // The rules that calls are held to; null: everybody may do everything. Not
  // owned, as the observers, who are told of calls.
  Access* access = nullptr;
  std::vector<CallObserver*> call_observers;
  // Serve gRPC's server reflection.
  bool reflection = true;
  // Serve gRPC's channelz, to everybody.
  bool channelz = false;
  // Told of changes of namespaces.
  AdminObserver observer;
  // What GetServer says.
  std::string version;
  // Says what the journal does; null: there is none.
  std::function<void(v1::JournalStatus* journal)> describe_journal;
  // Of the journal; null without one.
  BackupSource backup_source;
};

// How a drain went.
struct DrainReport {
  // That were open when it began.
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

  // Serves health on its own address, if there is one, as NOT_SERVING: for who
  // has something to do before Start. Errors as Start.
  absl::Status StartHealth();
  // Listens on all addresses, or on none: UNAVAILABLE that says which address
  // failed and why. StartHealth, if it was not called.
  absl::Status Start();

  // Where it listens, with the ports that were taken for port 0.
  const std::vector<std::string>& addresses() const { return addresses_; }
  // Empty without a listener for health.
  const std::string& health_address() const { return health_address_; }

  // To it, once it serves, without a socket.
  std::shared_ptr<grpc::Channel> InProcessChannel() {
    return server_->InProcessChannel(grpc::ChannelArguments());
  }

  // Connections that are open, and that were refused. From any thread.
  size_t connections() const { return acceptor_.open(); }
  uint64_t refused_connections() const { return acceptor_.refused(); }
  // How connections are paced, and what becomes of calls without credentials,
  // on the listeners for clients.
  const ConnectionPacer& pacer() const { return acceptor_.pacer(); }
  const PeerGuard& guard() const { return acceptor_.guard(); }
  // Watches of health on all listeners, and those that were refused.
  size_t health_watches() const;
  uint64_t refused_health_watches() const;
  // Responses that clients have not read. From any thread.
  ResponseLedger::Statistics responses() const {
    return responses_.GetStatistics();
  }

  // From any thread, while it serves. What is above stays, and no more comes.
  void SetMaxWatchers(int64_t max_watchers) { hub_.SetMax(max_watchers); }
  void SetMaxExpiringWatchers(int64_t max_watchers) {
    hub_.SetMaxExpiring(max_watchers);
  }

  // Health says NOT_SERVING and GetServer draining from now on; all else goes
  // on.
  void SetNotServing();

  // In this order: health says NOT_SERVING; watchers are told their last
  // watermark and end with OK; pipelines answer what they have read and end
  // with UNAVAILABLE; new calls are refused with UNAVAILABLE (DRAINING), for a
  // second if there were streams, so that their clients can read their ends,
  // and else for a tenth; watches of health end; connections are closed as
  // calls in flight finish, and those whose clients answer nothing within a
  // second. What is not done after `grace_us` is cancelled.
  // Probes of the listener for health are answered to the end.
  DrainReport Drain(int64_t grace_us);

 private:
  void Describe(v1::GetServerResponse* server) const;
  void DescribeLimits(v1::GetServerResponse* server) const;

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
  HealthService health_service_;
  Turns turns_;
  Backups backups_;
  // Reads for them, which may wait for a disk; null without a journal.
  const std::unique_ptr<Turns> backup_turns_;
  TimeCacheService time_cache_service_;
  NamespaceService namespace_service_;
  GroupService group_service_;
  ServerService server_service_;
  std::unique_ptr<VirtualClockService> virtual_clock_service_;
  std::unique_ptr<ReflectionService> reflection_service_;
  UnknownService unknown_service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HealthServer> health_server_;
  std::unique_ptr<KeepAwake> keep_awake_;
  std::vector<std::string> addresses_;
  std::string health_address_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_SERVER_H_

// The gRPC server: the services on their listeners, health, reflection, and the
// end.

#ifndef TIMECACHED_SERVER_SERVICE_SERVER_H_
#define TIMECACHED_SERVER_SERVICE_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/clock.h"
#include "server/engine/reaper.h"
#include "server/engine/registry.h"
#include "server/engine/store.h"
#include "server/service/keep_awake.h"
#include "server/service/namespace_service.h"
#include "server/service/open_streams.h"
#include "server/service/time_cache_service.h"
#include "server/service/virtual_clock_service.h"
#include "server/service/watch_hub.h"

namespace timecache {

struct ServerOptions {
  // host:port or unix:/path, at least one.
  std::vector<std::string> addresses;
  int64_t max_watchers = 10'000;
  // Set: VirtualClock is served on it. Not owned; the same that everything else
  // uses.
  ManualClock* virtual_clock = nullptr;
  // Told of changes of namespaces.
  NamespaceService::Observer observer;
};

// Serves from Start to Drain. Start and Drain are called once, by one thread.
class Server {
 public:
  // Neither is owned; all must outlive the server. What the store holds must be
  // driven by `reaper`.
  Server(Registry* registry, Reaper* reaper, const Clock* clock,
         ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Listens on all addresses, or on none: UNAVAILABLE that says which address
  // failed and why.
  absl::Status Start();

  // Where it listens, with the ports that were taken for port 0.
  const std::vector<std::string>& addresses() const { return addresses_; }

  // In this order: health says NOT_SERVING; watchers are told their last
  // watermark and end with OK; pipelines answer what they have read and end
  // with UNAVAILABLE; new calls are refused with UNAVAILABLE; calls in flight
  // finish, or are cancelled after `grace_us`. Returns whether all finished in
  // time.
  bool Drain(int64_t grace_us);

 private:
  ServerOptions options_;
  LocalStore store_;
  WatchHub hub_;
  OpenStreams streams_;
  TimeCacheService time_cache_service_;
  NamespaceService namespace_service_;
  std::unique_ptr<VirtualClockService> virtual_clock_service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<KeepAwake> keep_awake_;
  std::vector<std::string> addresses_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_SERVER_H_

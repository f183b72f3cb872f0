// How a server lives from its start to its end: by signals.

#ifndef TIMECACHED_SERVER_PROCESS_LIFECYCLE_H_
#define TIMECACHED_SERVER_PROCESS_LIFECYCLE_H_

#include "server/observability/readiness.h"
#include "server/process/reload.h"
#include "server/process/service_manager.h"
#include "server/process/signals.h"
#include "server/service/server.h"

namespace timecache::server {

// None is owned. Not thread-safe: one thread's, which is in Run for as long as
// the server serves.
struct Lifecycle {
  Signals* signals;
  const ServiceManager* manager;
  Readiness* readiness;
  Reload* reload;
  Server* server;

  // The server has started: tells probes and the service manager. SIGHUP
  // reloads. SIGINT or SIGTERM drains it, by the configuration that is in force
  // then: first it says that it does not serve, and serves on for drain_delay,
  // then it drains, within grace_period. Logs drain_started and server_stopped.
  // A second signal ends the delay, and a third, or a second without one, the
  // process on the spot.
  void Run();

 private:
  int ServeUntilSignal();
  void Stop(int signal);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PROCESS_LIFECYCLE_H_

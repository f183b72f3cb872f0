// A server's life from its start to its end, driven by signals.

#ifndef TIMECACHED_SERVER_MAIN_LIFECYCLE_H_
#define TIMECACHED_SERVER_MAIN_LIFECYCLE_H_

#include <functional>

#include "absl/time/time.h"
#include "server/main/reload.h"
#include "server/main/service_manager.h"
#include "server/main/signals.h"
#include "server/ops/readiness.h"
#include "server/rpc/server.h"

namespace timecache::server {

// None is owned. Not thread-safe: one thread's, which is in Run for as long as
// the server serves.
struct Lifecycle {
  Signals* signals;
  const ServiceManager* manager;
  Readiness* readiness;
  Reload* reload;
  Server* server;
  // Ends the process that long from its call on (ExitDeadline). Null without a
  // journal: nothing else waits for a disk.
  std::function<void(absl::Duration)> end_after;

  // The server has started: notifies probes and the service manager. SIGHUP
  // reloads. SIGINT or SIGTERM drains it, by the configuration in force at that
  // time: first it reports that it is not ready, and keeps serving for
  // drain_delay, then it drains, within grace_period. Logs drain_started and
  // server_stopped. A part of grace_period is for the journal, with which the
  // process ends: within grace_period, or up to two seconds later if that is
  // less than eight. A second
  // signal ends the delay, and a third one, or a second one without a delay,
  // the process at once.
  void Run();

 private:
  int ServeUntilSignal();
  void Stop(int signal);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_LIFECYCLE_H_

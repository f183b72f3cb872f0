// Metrics of the parts of the server that have none of their own.

#ifndef TIMECACHED_SERVER_MAIN_STATE_METRICS_H_
#define TIMECACHED_SERVER_MAIN_STATE_METRICS_H_

#include "server/base/clock.h"
#include "server/edge/access_file.h"
#include "server/edge/tls_listeners.h"
#include "server/main/reload.h"
#include "server/ops/metrics.h"
#include "server/rpc/server.h"

namespace timecache::server {

// Each must outlive the last Metrics::Text.
struct StateSources {
  const Server* server;
  const SystemClock* clock;
  const Reload* reload;
  const AccessFile* access;  // May be null.
  const TlsListeners* tls;
};

// Those of these, and of the process's memory account and log.
void AddStateMetrics(const StateSources& from, Metrics* metrics);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_STATE_METRICS_H_

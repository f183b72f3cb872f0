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

// Each is not owned and must outlive the last Metrics::Text.
void AddServerMetrics(const Server* server, Metrics* metrics);
// Responses that clients have not read. `server` must outlive the metrics.
void AddResponseMetrics(const Server* server, Metrics* metrics);
// The memory account of this process.
void AddMemoryMetrics(Metrics* metrics);
void AddClockMetrics(const SystemClock* clock, Metrics* metrics);
// The log of this process.
void AddLogMetrics(Metrics* metrics);
void AddReloadMetrics(const Reload* reload, Metrics* metrics);
// Nothing for null.
void AddAccessMetrics(const AccessFile* access, Metrics* metrics);
void AddTlsMetrics(const TlsListeners* tls, Metrics* metrics);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_STATE_METRICS_H_

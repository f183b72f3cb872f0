// Monitoring of this process: its metrics, its readiness, and the HTTP port
// that serves them.

#ifndef TIMECACHED_SERVER_OPS_MONITORING_H_
#define TIMECACHED_SERVER_OPS_MONITORING_H_

#include <string>

#include "absl/status/status.h"
#include "server/engine/registries.h"
#include "server/ops/engine_metrics.h"
#include "server/ops/http_server.h"
#include "server/ops/metrics.h"
#include "server/ops/process_metrics.h"
#include "server/ops/readiness.h"
#include "server/ops/rpc_metrics.h"

namespace timecache::server {

// Puts them together. Thread-safe, but for Start and Stop.
class Monitoring {
 public:
  // Not owned; must outlive this.
  explicit Monitoring(const Registries* registries);
  Monitoring(const Monitoring&) = delete;
  Monitoring& operator=(const Monitoring&) = delete;

  // Serves HTTP on `address`; empty: nowhere. Errors as HttpServer::Start.
  absl::Status Start(const std::string& address);
  // To be called before the sources of metrics() are destroyed: they are not
  // called any more.
  void Stop() { http_.Stop(); }
  // The address of the HTTP port; empty if there is none.
  const std::string& http_address() const { return http_.address(); }

  // The observer of all calls.
  RpcMetrics* calls() { return &calls_; }
  // For metrics of other parts.
  Metrics* metrics() { return &metrics_; }
  Readiness* readiness() { return &readiness_; }

 private:
  Readiness readiness_;
  RpcMetrics calls_;
  const EngineMetrics engine_;
  const ProcessMetrics process_;
  Metrics metrics_;
  // Destroyed first: it reads all others.
  HttpServer http_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_MONITORING_H_

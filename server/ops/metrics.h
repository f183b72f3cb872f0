// All metrics of the process.

#ifndef TIMECACHED_SERVER_OPS_METRICS_H_
#define TIMECACHED_SERVER_OPS_METRICS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/collectable.h"
#include "server/base/lock_order.h"
#include "server/ops/metric_family.h"

namespace timecache::server {

// Gathers metrics on request. deploy/prometheus/METRICS.md lists them all, and
// a test compares.
//
// Thread-safe. One Text at a time: its cost is that of all sources, about 20 us
// for each namespace.
class Metrics {
 public:
  Metrics() = default;
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // `source` is not owned and must outlive the last Text.
  void Add(const prometheus::Collectable* source) ABSL_LOCKS_EXCLUDED(mu_);

  // One number, a counter or gauge, read at each Text; `value` must not call
  // this. Several with the same name must differ in their labels and follow each
  // other.
  void Add(const MetricInfo& info, std::function<double()> value,
           MetricLabels labels = {}) ABSL_LOCKS_EXCLUDED(mu_);

  // Prometheus' text format.
  std::string Text() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Number {
    MetricInfo info;
    std::function<double()> value;
    MetricLabels labels;
  };

  mutable absl::Mutex mu_ ABSL_ACQUIRED_BEFORE(lock_order::kUpdate);
  std::vector<const prometheus::Collectable*> sources_ ABSL_GUARDED_BY(mu_);
  std::vector<Number> numbers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_METRICS_H_

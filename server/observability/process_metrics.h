// What the kernel says about this process, under the names that Prometheus'
// client libraries have in common.

#ifndef TIMECACHED_SERVER_OBSERVABILITY_PROCESS_METRICS_H_
#define TIMECACHED_SERVER_OBSERVABILITY_PROCESS_METRICS_H_

#include <prometheus/collectable.h>

#include <vector>

namespace timecache::server {

// Thread-safe. Reads files of /proc/self, about 100 us. Without /proc it has
// nothing to tell.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OBSERVABILITY_PROCESS_METRICS_H_

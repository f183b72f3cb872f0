// The kernel's metrics of this process, under the names that Prometheus' client
// libraries share.

#ifndef TIMECACHED_SERVER_OPS_PROCESS_METRICS_H_
#define TIMECACHED_SERVER_OPS_PROCESS_METRICS_H_

#include <vector>

#include "prometheus/collectable.h"

namespace timecache::server {

// Thread-safe. Reads files of /proc/self, about 100 us. Without /proc there are
// none.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  std::vector<prometheus::MetricFamily> Collect() const override;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_PROCESS_METRICS_H_

// Metrics as Prometheus reads them.

#ifndef TIMECACHED_SERVER_OPS_METRICS_TEXT_H_
#define TIMECACHED_SERVER_OPS_METRICS_TEXT_H_

#include <string>
#include <vector>

#include "prometheus/metric_family.h"

namespace timecache::server {

// The text exposition format, version 0.0.4, of counters, gauges and
// histograms. In place of prometheus-cpp's own serializer, which writes numbers
// with 16 digits: 0.524287 as 0.5242869999999999. Here each is the shortest
// that reads back as the same number. Thread-safe.
std::string MetricsText(const std::vector<prometheus::MetricFamily>& families);

// One number so written.
std::string MetricNumber(double value);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_METRICS_TEXT_H_

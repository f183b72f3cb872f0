// The parts of metrics: names, help and samples, for prometheus-cpp.

#ifndef TIMECACHED_SERVER_OPS_METRIC_FAMILY_H_
#define TIMECACHED_SERVER_OPS_METRIC_FAMILY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "prometheus/client_metric.h"
#include "prometheus/metric_family.h"

namespace timecache::server {

// A metric without its samples. Names end in their unit, and those of counters,
// no others, in _total.
struct MetricInfo {
  const char* name;
  const char* help;
};

// Pairs of name and value.
using MetricLabels = std::vector<prometheus::ClientMetric::Label>;

inline prometheus::MetricFamily NewFamily(const MetricInfo& info,
                                          prometheus::MetricType type) {
  return {info.name, info.help, type, {}};
}
// Of a counter or gauge.
inline prometheus::MetricFamily NewFamily(const MetricInfo& info) {
  return NewFamily(info, absl::EndsWith(info.name, "_total")
                             ? prometheus::MetricType::Counter
                             : prometheus::MetricType::Gauge);
}

// Adds a sample of a counter or gauge, as the family is one.
inline void AddSample(MetricLabels labels, double value,
                      prometheus::MetricFamily* family) {
  prometheus::ClientMetric& metric = family->metric.emplace_back();
  metric.label = std::move(labels);
  if (family->type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_METRIC_FAMILY_H_

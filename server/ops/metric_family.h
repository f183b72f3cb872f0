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
#include "server/base/clock.h"
#include "server/base/duration_histogram.h"

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

// Of a histogram. Buckets end at powers of two: from 2^6 microseconds, 64 us,
// to 2^23, 8.4 s.
inline prometheus::ClientMetric HistogramSample(
    const MetricLabels& labels, const DurationHistogram& histogram) {
  prometheus::ClientMetric metric;
  metric.label = labels;
  metric.histogram.sample_count = histogram.total();
  metric.histogram.sample_sum = histogram.sum_us() / kMicrosPerSecond;
  for (size_t width = 6; width <= 23; ++width) {
    metric.histogram.bucket.push_back(
        {histogram.CountAtMost(width),
         static_cast<double>(int64_t{1} << width) / kMicrosPerSecond});
  }
  return metric;
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_METRIC_FAMILY_H_

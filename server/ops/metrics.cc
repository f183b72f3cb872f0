#include "server/ops/metrics.h"

#include <iterator>
#include <utility>

#include "prometheus/text_serializer.h"

namespace timecache::server {

void Metrics::Add(const prometheus::Collectable* source) {
  absl::MutexLock lock(&mu_);
  sources_.push_back(source);
}

void Metrics::AddGauge(const MetricInfo& info, MetricLabels labels,
                       std::function<double()> value) {
  absl::MutexLock lock(&mu_);
  numbers_.push_back({info, prometheus::MetricType::Gauge, std::move(labels),
                      std::move(value)});
}

void Metrics::AddCounter(const MetricInfo& info, MetricLabels labels,
                         std::function<double()> value) {
  absl::MutexLock lock(&mu_);
  numbers_.push_back({info, prometheus::MetricType::Counter, std::move(labels),
                      std::move(value)});
}

std::vector<prometheus::MetricFamily> Metrics::Numbers() const {
  std::vector<prometheus::MetricFamily> families;
  for (const Number& number : numbers_) {
    if (families.empty() || families.back().name != number.info.name) {
      families.push_back(NewFamily(number.info, number.type));
    }
    AddSample(number.labels, number.value(), &families.back());
  }
  return families;
}

std::string Metrics::Text() const {
  absl::MutexLock lock(&mu_);
  std::vector<prometheus::MetricFamily> families = Numbers();
  for (const prometheus::Collectable* source : sources_) {
    std::vector<prometheus::MetricFamily> more = source->Collect();
    std::move(more.begin(), more.end(), std::back_inserter(families));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace timecache::server

#include "server/ops/metrics.h"

#include <iterator>
#include <utility>

#include "prometheus/text_serializer.h"

namespace timecache::server {

void Metrics::Add(const prometheus::Collectable* source) {
  absl::MutexLock lock(&mu_);
  sources_.push_back(source);
}

void Metrics::Add(const MetricInfo& info, std::function<double()> value,
                  MetricLabels labels) {
  absl::MutexLock lock(&mu_);
  numbers_.push_back({info, std::move(value), std::move(labels)});
}

std::string Metrics::Text() const {
  absl::MutexLock lock(&mu_);
  std::vector<prometheus::MetricFamily> families;
  for (const Number& number : numbers_) {
    if (families.empty() || families.back().name != number.info.name) {
      families.push_back(NewFamily(number.info));
    }
    AddSample(number.labels, number.value(), &families.back());
  }
  for (const prometheus::Collectable* source : sources_) {
    std::vector<prometheus::MetricFamily> more = source->Collect();
    std::move(more.begin(), more.end(), std::back_inserter(families));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace timecache::server

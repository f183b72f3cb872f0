// Metrics of namespaces and their consumer groups.

#ifndef TIMECACHED_SERVER_OPS_ENGINE_METRICS_H_
#define TIMECACHED_SERVER_OPS_ENGINE_METRICS_H_

#include <vector>

#include "prometheus/collectable.h"
#include "server/engine/registries.h"

namespace timecache::server {

// Reads the statistics of all namespaces on each scrape: scrapes pay for them,
// not puts.
//
// The first kMaxLabelledNamespaces namespaces and kMaxLabelledGroups consumer
// groups, in order of their names, have samples of their own. A namespace of several
// partitions has samples for each, with the label "partition", which count as a
// namespace and its groups. The others are
// added up as kOther, which is not a valid name; when one is created or
// deleted, another may move between the two, which a counter shows as a reset. One
// that goes to another node of a cluster, with its slot, is no longer in here, and its
// counters begin there with what the journal has of them.
//
// Thread-safe. O(namespaces x (shards + buckets)); holds each namespace's locks
// briefly.
class EngineMetrics final : public prometheus::Collectable {
 public:
  static constexpr size_t kMaxLabelledNamespaces = 1'000;
  static constexpr size_t kMaxLabelledGroups = 1'000;
  static constexpr char kOther[] = "_other";

  // Not owned; must outlive the last Collect. The limits are those of the class,
  // but for tests.
  explicit EngineMetrics(const Registries* registries,
                         size_t max_namespaces = kMaxLabelledNamespaces,
                         size_t max_groups = kMaxLabelledGroups)
      : registries_(registries),
        max_namespaces_(max_namespaces),
        max_groups_(max_groups) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Registries* const registries_;
  const size_t max_namespaces_;
  const size_t max_groups_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_ENGINE_METRICS_H_

// Metrics of a node's part in its cluster.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_METRICS_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_METRICS_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "server/main/cluster_term.h"
#include "server/peer/peer_link.h"

namespace timecache::server {

// Thread-safe.
class ClusterMetrics final : public prometheus::Collectable {
 public:
  // `status` is called in each Collect, on its thread. `peers`: of the calls that
  // this node has others answer; null: there are none. Not owned.
  ClusterMetrics(std::string cluster,
                 std::function<ClusterTerm::Status()> status,
                 const PeerCounts* peers = nullptr)
      : cluster_(std::move(cluster)),
        status_(std::move(status)),
        peers_(peers) {}

  // O(nodes of the cluster).
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::string cluster_;
  const std::function<ClusterTerm::Status()> status_;
  const PeerCounts* const peers_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_METRICS_H_

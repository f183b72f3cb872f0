// Metrics of a node's part in its cluster.

#ifndef TIMECACHED_SERVER_MAIN_CLUSTER_METRICS_H_
#define TIMECACHED_SERVER_MAIN_CLUSTER_METRICS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "prometheus/collectable.h"
#include "server/cluster/membership_status.h"
#include "server/main/cluster_events.h"
#include "server/main/cluster_term.h"
#include "server/peer/peer_link.h"

namespace timecache::server {

// Where one node owns all. Thread-safe.
class ClusterMetrics final : public prometheus::Collectable {
 public:
  // `status` is called in each Collect, on its thread.
  ClusterMetrics(std::string cluster,
                 std::function<ClusterTerm::Status()> status)
      : cluster_(std::move(cluster)), status_(std::move(status)) {}

  // O(nodes of the cluster).
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::string cluster_;
  const std::function<ClusterTerm::Status()> status_;
};

// Of a node that shares the ownership.
struct SharedClusterStatus {
  std::string node;
  MembershipStatus membership;
  ClusterEvents events;
  size_t topic_faults = 0;
};

// Thread-safe.
class SharedClusterMetrics final : public prometheus::Collectable {
 public:
  // `status` is called in each Collect, on its thread. `peers`: of the calls that this
  // node has others answer. Not owned.
  SharedClusterMetrics(std::string cluster,
                       std::function<SharedClusterStatus()> status,
                       const PeerCounts* peers)
      : cluster_(std::move(cluster)),
        status_(std::move(status)),
        peers_(*peers) {}

  // O(slots * nodes of the cluster).
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const std::string cluster_;
  const std::function<SharedClusterStatus()> status_;
  const PeerCounts& peers_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CLUSTER_METRICS_H_

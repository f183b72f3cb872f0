#include "server/main/cluster_metrics.h"

#include <algorithm>
#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/time/time.h"
#include "server/ops/metric_family.h"

namespace timecache::server {
namespace {

constexpr struct {
  MemberRole role;
  const char* name;
} kRoles[] = {{MemberRole::kStandby, "standby"},
              {MemberRole::kTakingOver, "taking_over"},
              {MemberRole::kOwner, "owner"},
              {MemberRole::kEnded, "ended"}};

// Which the owner is not.
int64_t CountReadyStandbys(const ControlState::View& view) {
  return absl::c_count_if(view.nodes, [&](const ControlState::Node& node) {
    const bool owns = view.owner.has_value() &&
                      view.owner->node.name == node.name &&
                      view.owner->node.incarnation == node.incarnation;
    return node.ready && !node.gone && !owns;
  });
}

}  // namespace

std::vector<prometheus::MetricFamily> ClusterMetrics::Collect() const {
  const ClusterTerm::Status status = status_();
  const MemberStatus& member = status.member;
  const bool owns = member.role == MemberRole::kOwner;
  const double lease_s = owns ? absl::ToDoubleSeconds(member.lease_left) : 0;
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](const MetricInfo& info, double value) {
    AddSample({{"cluster", cluster_}}, value,
              &families.emplace_back(NewFamily(info)));
  };
  add({"timecache_cluster_owner",
       "1: this node owns the cluster's journal and serves calls; 0: it does "
       "not."},
      owns && status.serving && lease_s > 0 ? 1 : 0);
  prometheus::MetricFamily& roles =
      families.emplace_back(NewFamily({"timecache_cluster_role",
                                       "1 for the node's role, 0 for the "
                                       "others."}));
  for (const auto& [role, name] : kRoles) {
    AddSample({{"cluster", cluster_}, {"role", name}},
              role == member.role ? 1 : 0, &roles);
  }
  add({"timecache_cluster_lease_seconds",
       "Time until the owner's lease ends, at most cluster.lease; 0 or less: "
       "it has ended, and calls are refused; 0 for a standby."},
      lease_s);
  add({"timecache_cluster_leases_late_total",
       "Times that the owner's lease ended because no heartbeat came back from "
       "the control log in time."},
      static_cast<double>(status.events.leases_late));
  add({"timecache_cluster_takeovers_total",
       "Times that this process became the owner."},
      static_cast<double>(status.events.takeovers));
  add({"timecache_cluster_fenced_total",
       "Times that another node took over while this process was the owner."},
      static_cast<double>(status.events.fenced));
  add({"timecache_cluster_clock_skew_seconds",
       "How far the machine's clock is ahead of the brokers'; negative: behind "
       "them."},
      absl::ToDoubleSeconds(member.clock_skew));
  add({"timecache_cluster_heartbeat_age_seconds",
       "Time since this node last read one of its heartbeats from the control "
       "log; +Inf: it has read none."},
      absl::ToDoubleSeconds(member.since_heartbeat));
  add({"timecache_cluster_replay_lag_messages",
       "Messages of the journal that a standby has not read, at most; 0 for "
       "the owner."},
      owns ? 0 : static_cast<double>(status.lag.messages));
  add({"timecache_cluster_replay_lag_seconds",
       "Age of the oldest of these messages, at most, by the brokers' clocks; "
       "0 "
       "for the owner; +Inf: a standby has read none of a partition yet."},
      owns ? 0 : absl::ToDoubleSeconds(status.lag.age));
  add({"timecache_cluster_nodes",
       "Nodes whose heartbeats this node reads, itself included."},
      static_cast<double>(absl::c_count_if(
          member.view.nodes,
          [](const ControlState::Node& node) { return !node.gone; })));
  add({"timecache_cluster_ready_standbys",
       "Nodes that would take over at once, were the owner gone."},
      static_cast<double>(CountReadyStandbys(member.view)));
  add({"timecache_cluster_topic_faults",
       "Settings of the cluster's topics that can lose acknowledged writes, "
       "when they were last checked."},
      static_cast<double>(status.faults.size()));
  if (peers_ == nullptr) return families;
  add({"timecache_cluster_forwarded_calls_total",
       "Calls that this node had another one answer."},
      static_cast<double>(peers_->calls));
  add({"timecache_cluster_forwarded_calls_repeated_total",
       "Of these, those that only read and were sent again, as the connection "
       "broke."},
      static_cast<double>(peers_->repeated_calls));
  add({"timecache_cluster_forwarded_calls_failed_total",
       "Of these, those that the other node did not answer."},
      static_cast<double>(peers_->failed_calls));
  add({"timecache_cluster_peer_messages_sent_total",
       "Messages sent to other nodes, each with the calls that waited."},
      static_cast<double>(peers_->messages_sent));
  add({"timecache_cluster_peer_messages_received_total",
       "Messages received from other nodes, each with the answers that "
       "waited."},
      static_cast<double>(peers_->messages_received));
  add({"timecache_cluster_peer_sent_bytes_total",
       "Bytes of the messages sent to other nodes."},
      static_cast<double>(peers_->bytes_sent));
  add({"timecache_cluster_peer_received_bytes_total",
       "Bytes of the messages received from other nodes."},
      static_cast<double>(peers_->bytes_received));
  add({"timecache_cluster_open_peers",
       "Nodes that this one has a connection to for calls."},
      static_cast<double>(peers_->open));
  return families;
}

}  // namespace timecache::server

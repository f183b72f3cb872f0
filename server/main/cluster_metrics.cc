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

// The families of one cluster.
class Families {
 public:
  explicit Families(const std::string& cluster) : cluster_(cluster) {}

  void Add(const MetricInfo& info, double value) {
    AddSample({{"cluster", cluster_}}, value,
              &families_.emplace_back(NewFamily(info)));
  }
  prometheus::MetricFamily& New(const MetricInfo& info) {
    return families_.emplace_back(NewFamily(info));
  }
  void AddEvents(const ClusterEvents& events) {
    Add({"timecache_cluster_leases_late_total",
         "Times that the owner's lease ended because no heartbeat came back "
         "from the control log in time."},
        static_cast<double>(events.leases_late));
    Add({"timecache_cluster_takeovers_total",
         "Times that this process became the owner, of a slot where each has "
         "its own."},
        static_cast<double>(events.takeovers));
    Add({"timecache_cluster_fenced_total",
         "Times that another node took over while this process was the "
         "owner."},
        static_cast<double>(events.fenced));
  }
  void AddNode(absl::Duration clock_skew, absl::Duration since_heartbeat,
               const std::vector<ControlState::Node>& nodes,
               size_t topic_faults) {
    Add({"timecache_cluster_clock_skew_seconds",
         "How far the machine's clock is ahead of the brokers'; negative: "
         "behind them."},
        absl::ToDoubleSeconds(clock_skew));
    Add({"timecache_cluster_heartbeat_age_seconds",
         "Time since this node last read one of its heartbeats from the "
         "control log; +Inf: it has read none."},
        absl::ToDoubleSeconds(since_heartbeat));
    Add({"timecache_cluster_nodes",
         "Nodes whose heartbeats this node reads, itself included."},
        static_cast<double>(absl::c_count_if(
            nodes, [](const ControlState::Node& node) { return !node.gone; })));
    Add({"timecache_cluster_topic_faults",
         "Settings of the cluster's topics that can lose acknowledged writes, "
         "when they were last checked."},
        static_cast<double>(topic_faults));
  }
  std::vector<prometheus::MetricFamily> Take() { return std::move(families_); }

 private:
  const std::string& cluster_;
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace

std::vector<prometheus::MetricFamily> ClusterMetrics::Collect() const {
  const ClusterTerm::Status status = status_();
  const MemberStatus& member = status.member;
  const bool owns = member.role == MemberRole::kOwner;
  const double lease_s = owns ? absl::ToDoubleSeconds(member.lease_left) : 0;
  Families families(cluster_);
  families.Add(
      {"timecache_cluster_owner",
       "1: this node owns the cluster's journal and serves calls; 0: it does "
       "not."},
      owns && status.serving && lease_s > 0 ? 1 : 0);
  prometheus::MetricFamily& roles = families.New(
      {"timecache_cluster_role", "1 for the node's role, 0 for the others."});
  for (const auto& [role, name] : kRoles) {
    AddSample({{"cluster", cluster_}, {"role", name}},
              role == member.role ? 1 : 0, &roles);
  }
  families.Add(
      {"timecache_cluster_lease_seconds",
       "Time until the owner's lease ends, at most cluster.lease; 0 or less: "
       "it has ended, and calls are refused; 0 for a standby."},
      lease_s);
  families.Add(
      {"timecache_cluster_replay_lag_messages",
       "Messages of the journal that a standby has not read, at most; 0 for "
       "the owner."},
      owns ? 0 : static_cast<double>(status.lag.messages));
  families.Add(
      {"timecache_cluster_replay_lag_seconds",
       "Age of the oldest of these messages, at most, by the brokers' clocks; "
       "0 "
       "for the owner; +Inf: a standby has read none of a partition yet."},
      owns ? 0 : absl::ToDoubleSeconds(status.lag.age));
  families.Add({"timecache_cluster_ready_standbys",
                "Nodes that would take over at once, were the owner gone."},
               static_cast<double>(CountReadyStandbys(member.view)));
  families.AddEvents(status.events);
  families.AddNode(member.clock_skew, member.since_heartbeat, member.view.nodes,
                   status.faults.size());
  return families.Take();
}

std::vector<prometheus::MetricFamily> SharedClusterMetrics::Collect() const {
  const SharedClusterStatus status = status_();
  int64_t owned = 0;
  int64_t standing_by = 0;
  int64_t ownerless = 0;
  int64_t without_standby = 0;
  int64_t moving = 0;
  absl::Duration lease = absl::InfiniteDuration();
  for (const SlotStatus& slot : status.membership.slots) {
    const SlotPlacement& place = slot.placement;
    owned += place.is_mine ? 1 : 0;
    standing_by += place.host && !place.is_mine ? 1 : 0;
    ownerless += place.owner.empty() ? 1 : 0;
    without_standby += absl::c_none_of(slot.standbys,
                                       [](const ControlState::Node& node) {
                                         return node.ready;
                                       })
                           ? 1
                           : 0;
    moving += !place.owner.empty() && place.owner != place.wanted_owner ? 1 : 0;
    if (place.is_mine) lease = std::min(lease, slot.lease_left);
  }
  Families families(cluster_);
  families.Add({"timecache_cluster_owned_slots",
                "Slots, which are partitions of the journal, that this node "
                "owns."},
               static_cast<double>(owned));
  families.Add({"timecache_cluster_standby_slots",
                "Slots that this node replays, and does not own."},
               static_cast<double>(standing_by));
  families.Add({"timecache_cluster_ownerless_slots",
                "Slots of the cluster that no node owns, as this one sees it: "
                "calls about them wait, or are refused."},
               static_cast<double>(ownerless));
  families.Add({"timecache_cluster_slots_without_standby",
                "Slots of the cluster that no node would take over at once."},
               static_cast<double>(without_standby));
  families.Add({"timecache_cluster_moving_slots",
                "Slots of the cluster that are to go to another node."},
               static_cast<double>(moving));
  families.Add({"timecache_cluster_lease_seconds",
                "Time until the owner's lease ends, at most cluster.lease; 0 "
                "or less: it has ended, and calls are refused; 0 for a "
                "standby."},
               owned > 0 ? absl::ToDoubleSeconds(lease) : 0);
  families.AddEvents(status.events);
  families.AddNode(status.membership.clock_skew,
                   status.membership.since_heartbeat, status.membership.nodes,
                   status.topic_faults);
  families.Add({"timecache_cluster_forwarded_calls_total",
                "Calls that this node had another one answer."},
               static_cast<double>(peers_.calls));
  families.Add(
      {"timecache_cluster_forwarded_calls_repeated_total",
       "Of these, those that only read and were sent again, as the connection "
       "broke."},
      static_cast<double>(peers_.repeated_calls));
  families.Add({"timecache_cluster_forwarded_calls_failed_total",
                "Of these, those that the other node did not answer."},
               static_cast<double>(peers_.failed_calls));
  families.Add(
      {"timecache_cluster_peer_messages_sent_total",
       "Messages sent to other nodes, each with the calls that waited."},
      static_cast<double>(peers_.messages_sent));
  families.Add(
      {"timecache_cluster_peer_messages_received_total",
       "Messages received from other nodes, each with the answers that "
       "waited."},
      static_cast<double>(peers_.messages_received));
  families.Add({"timecache_cluster_peer_sent_bytes_total",
                "Bytes of the messages sent to other nodes."},
               static_cast<double>(peers_.bytes_sent));
  families.Add({"timecache_cluster_peer_received_bytes_total",
                "Bytes of the messages received from other nodes."},
               static_cast<double>(peers_.bytes_received));
  families.Add({"timecache_cluster_open_peers",
                "Nodes that this one has a connection to for calls."},
               static_cast<double>(peers_.open));
  return families.Take();
}

}  // namespace timecache::server

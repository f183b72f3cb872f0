#include <cstdint>
#include <string>

#include "server/api/proto_time.h"
#include "server/main/cluster_term.h"

namespace timecache::server {
namespace {

v1::NodeRole RoleOf(const ControlState::Node& node,
                    const ControlState::View& view, bool serving) {
  if (node.gone) return v1::NODE_ROLE_GONE;
  const bool owns = view.owner.has_value() && !view.owner->released &&
                    view.owner->node.name == node.name &&
                    view.owner->node.incarnation == node.incarnation;
  if (!owns) return v1::NODE_ROLE_STANDBY;
  return serving ? v1::NODE_ROLE_OWNER : v1::NODE_ROLE_TAKING_OVER;
}

void SetNode(const ControlState::Node& node, v1::NodeRole role,
             v1::ClusterNode* to) {
  to->set_name(node.name);
  to->set_address(node.address);
  to->set_version(node.version);
  to->set_role(role);
  SetDuration(absl::ToInt64Microseconds(node.silence),
              to->mutable_since_heartbeat());
  to->set_lag_messages(node.lag_messages.value_or(0));
  if (node.lag_age.has_value()) {
    SetDuration(absl::ToInt64Microseconds(*node.lag_age),
                to->mutable_lag_age());
  }
  to->set_caught_up(role == v1::NODE_ROLE_OWNER || node.ready);
}

}  // namespace

void ClusterTerm::Describe(v1::GetClusterResponse* cluster) const {
  const Status status = GetStatus();
  const ControlState::View& view = status.member.view;
  cluster->set_name(config_.name());
  cluster->set_node(config_.node());
  for (const ControlState::Node& node : view.nodes) {
    // Of others it is not said whether they serve already.
    const bool serving = node.name != config_.node() || status.serving;
    SetNode(node, RoleOf(node, view, serving), cluster->add_nodes());
  }
  if (view.owner.has_value() && !view.owner->released &&
      !view.owner->node.gone) {
    cluster->set_owner(view.owner->node.name);
    cluster->set_claim(static_cast<uint64_t>(view.owner->takeover));
    SetTime(absl::ToUnixMicros(view.owner->since),
            cluster->mutable_owner_since());
  }
  if (status.member.role == MemberRole::kOwner) {
    SetDuration(absl::ToInt64Microseconds(status.member.lease_left),
                cluster->mutable_lease_left());
  }
  SetDuration(absl::ToInt64Microseconds(status.member.clock_skew),
              cluster->mutable_clock_skew());
  cluster->set_successor(status.member.successor);
  for (const std::string& broker : kafka_.brokers) cluster->add_brokers(broker);
  for (const TopicFault& fault : status.faults) {
    v1::TopicSetting* const to = cluster->add_wrong_settings();
    to->set_topic(fault.topic);
    to->set_setting(fault.setting);
    to->set_value(fault.value);
    to->set_wanted(fault.wanted);
  }
  cluster->set_waits_for(status.member.waits_for);
}

}  // namespace timecache::server

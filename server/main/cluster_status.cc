#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/api/proto_time.h"
#include "server/main/cluster_term.h"
#include "server/main/slots.h"

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
  cluster_.Describe(cluster);
  for (const ControlState::Node& member : view.nodes) {
    // Of others it is not said whether they serve already.
    const bool serving = member.name != node() || status.serving;
    SetNode(member, RoleOf(member, view, serving), cluster->add_nodes());
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
  cluster->set_waits_for(status.member.waits_for);
}

void Slots::Describe(v1::GetClusterResponse* cluster) const {
  cluster_.Describe(cluster);
  const MembershipStatus status = cluster_.membership().GetStatus();
  std::set<std::string> owners;
  for (const SlotStatus& slot : status.slots) {
    const SlotPlacement& place = slot.placement;
    v1::ClusterSlot* const to = cluster->add_slots();
    to->set_owner(place.owner);
    owners.insert(place.owner);
    if (place.wanted_owner != place.owner) to->set_moves_to(place.wanted_owner);
    const auto standby = std::max_element(
        slot.standbys.begin(), slot.standbys.end(),
        [](const auto& a, const auto& b) { return a.ready < b.ready; });
    if (standby == slot.standbys.end()) continue;
    to->set_standby(standby->name);
    to->set_standby_ready(standby->ready);
  }
  for (const ControlState::Node& node : status.nodes) {
    const v1::NodeRole role = node.gone ? v1::NODE_ROLE_GONE
                              : owners.count(node.name) > 0
                                  ? v1::NODE_ROLE_OWNER
                                  : v1::NODE_ROLE_STANDBY;
    SetNode(node, role, cluster->add_nodes());
  }
  SetDuration(absl::ToInt64Microseconds(status.clock_skew),
              cluster->mutable_clock_skew());
  if (!status.whole_owner.empty()) {
    cluster->set_owner(status.whole_owner);
    cluster->set_waits_for(absl::StrCat(
        status.whole_owner,
        " owns all: it runs without cluster.forward_calls, which is to be the "
        "same for all nodes"));
  }
}

}  // namespace timecache::server

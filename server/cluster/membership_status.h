// What a member says of all slots of its cluster.

#ifndef TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_STATUS_H_
#define TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/cluster/control_state.h"
#include "server/cluster/member_options.h"

namespace timecache::server {

// Who owns the maps of a cluster.
enum class Sharing {
  // One node, all of them: there is one slot. Nodes write and read what those of
  // versions without slots do.
  kOneOwner,
  // Each slot has an owner of its own.
  kSlots,
};

// In place of a slot's number: what is of the node, whatever it owns.
inline constexpr int kWholeNode = -1;

// Who is to have a slot. Names are empty where there is no such node.
struct SlotPlacement {
  // Owns it, and neither is gone nor has released.
  std::string owner;
  std::string owner_address;
  // It is this node, in its present term.
  bool is_mine = false;
  // See PlaceSlots. One that leaves, or is gone, is wanted for nothing.
  std::string wanted_owner;
  std::string wanted_standby;
  // This node is to replay it: it is one of both, or owns it, or the owner has released
  // to it; or it does, and there is no owner that stays.
  bool host = false;
};

struct SlotStatus {
  SlotPlacement placement;
  // The last owner, also if it is gone or has released; see ControlState::Owner.
  std::optional<ControlState::Owner> owner;
  // Those that replay it and live, by name, without the owner.
  std::vector<ControlState::Node> standbys;
  // Of this node; see MemberStatus.
  MemberRole role = MemberRole::kStandby;
  absl::Duration lease_left = -absl::InfiniteDuration();
  std::string successor;
  std::string waits_for;
};

struct MembershipStatus {
  // All that are known, by name. Their lag is the largest of their slots'.
  std::vector<ControlState::Node> nodes;
  // As MemberStatus.
  absl::Duration clock_skew = absl::ZeroDuration();
  absl::Duration since_heartbeat = absl::InfiniteDuration();
  // The node that owns all slots, as it knows of none (cluster.forward_calls is not
  // set there); empty: there is none.
  std::string whole_owner;
  // By number.
  std::vector<SlotStatus> slots;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_STATUS_H_

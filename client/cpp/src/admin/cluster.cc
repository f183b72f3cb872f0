#include <string>
#include <utility>

#include "client/cpp/src/data/convert.h"
#include "client/cpp/src/rpc/call.h"
#include "client/cpp/src/rpc/client_core.h"
#include "timecache/client.h"

namespace timecache {
namespace {

// A later server may have other roles.
NodeRole RoleOf(v1::NodeRole role) {
  return v1::NodeRole_IsValid(role) ? static_cast<NodeRole>(role)
                                    : NodeRole::kUnknown;
}
static_assert(static_cast<int>(NodeRole::kGone) == v1::NODE_ROLE_GONE);

ClusterInfo InfoOf(v1::GetClusterResponse&& from) {
  ClusterInfo to = {.name = from.name(),
                    .node = from.node(),
                    .owner = from.owner(),
                    .claim = from.claim(),
                    .clock_skew = FromProto(from.clock_skew()),
                    .successor = from.successor(),
                    .brokers = {from.brokers().begin(), from.brokers().end()},
                    .waits_for = from.waits_for()};
  for (const v1::ClusterNode& node : from.nodes()) {
    to.nodes.push_back({.name = node.name(),
                        .address = node.address(),
                        .version = node.version(),
                        .role = RoleOf(node.role()),
                        .since_heartbeat = FromProto(node.since_heartbeat()),
                        .lag_messages = node.lag_messages(),
                        .caught_up = node.caught_up()});
    if (node.has_lag_age()) {
      to.nodes.back().lag_age = FromProto(node.lag_age());
    }
  }
  if (from.has_owner_since()) to.owner_since = FromProto(from.owner_since());
  if (from.has_lease_left()) to.lease_left = FromProto(from.lease_left());
  for (const v1::TopicSetting& setting : from.wrong_settings()) {
    to.wrong_settings.push_back({.topic = setting.topic(),
                                 .setting = setting.setting(),
                                 .value = setting.value(),
                                 .wanted = setting.wanted()});
  }
  for (const v1::ClusterSlot& slot : from.slots()) {
    to.slots.push_back({.owner = slot.owner(),
                        .standby = slot.standby(),
                        .standby_ready = slot.standby_ready(),
                        .moves_to = slot.moves_to()});
  }
  return to;
}

}  // namespace

absl::StatusOr<ClusterInfo> Client::GetCluster(const CallOptions& call) const {
  auto response = Call(
      core_->endpoints, &Endpoint::server, &v1::ServerService::Stub::GetCluster,
      v1::GetClusterRequest(), CallPlan(options_, call, Repeat::kSafe));
  if (!response.ok()) return response.status();
  return InfoOf(*std::move(response));
}

absl::StatusOr<std::string> Client::HandOver(const std::string& to,
                                             const CallOptions& call) const {
  v1::HandOverRequest request;
  request.set_to(to);
  auto response = Call(core_->endpoints, &Endpoint::server,
                       &v1::ServerService::Stub::HandOver, request,
                       CallPlan(options_, call, Repeat::kUnsafe));
  if (!response.ok()) return response.status();
  return response->to();
}

}  // namespace timecache

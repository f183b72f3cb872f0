#include "server/main/cluster_metrics.h"

#include <map>
#include <string>

#include "gtest/gtest.h"
#include "prometheus/metric_family.h"

namespace timecache::server {
namespace {

ControlState::Node NodeNamed(const std::string& name, bool ready, bool gone) {
  ControlState::Node node;
  node.name = name;
  node.incarnation = 1;
  node.ready = ready;
  node.gone = gone;
  return node;
}

// Node "a" owns; "b" is ready; "c" is not; "d" was, and is gone.
ClusterTerm::Status StatusOfOwner() {
  ClusterTerm::Status status;
  status.member.view.nodes = {
      NodeNamed("a", true, false), NodeNamed("b", true, false),
      NodeNamed("c", false, false), NodeNamed("d", true, true)};
  ControlState::Owner owner;
  owner.node = status.member.view.nodes[0];
  status.member.view.owner = owner;
  status.member.role = MemberRole::kOwner;
  status.member.lease_left = absl::Milliseconds(750);
  status.member.since_heartbeat = absl::Milliseconds(250);
  status.member.clock_skew = absl::Milliseconds(-125);
  status.lag.messages = 7;
  status.lag.age = absl::Milliseconds(1'500);
  status.serving = true;
  status.faults.resize(2);
  status.events.takeovers = 3;
  return status;
}

// By name, and the label role where there is one.
std::map<std::string, double> ValuesOf(const prometheus::Collectable& metrics) {
  std::map<std::string, double> values;
  for (const auto& family : metrics.Collect()) {
    const std::string prefix = "timecache_cluster_";
    EXPECT_EQ(family.name.substr(0, prefix.size()), prefix);
    for (const auto& metric : family.metric) {
      EXPECT_EQ(metric.label[0].value, "eu");
      std::string name = family.name.substr(prefix.size());
      if (metric.label.size() > 1) name += " " + metric.label[1].value;
      values[name] = metric.counter.value + metric.gauge.value;
    }
  }
  return values;
}

std::map<std::string, double> ValuesOf(const ClusterTerm::Status& status) {
  return ValuesOf(ClusterMetrics("eu", [&] { return status; }));
}

TEST(ClusterMetricsTest, TheOwnerCountsThoseThatWouldTakeOver) {
  auto values = ValuesOf(StatusOfOwner());
  EXPECT_EQ(values["owner"], 1);
  EXPECT_EQ(values["role owner"], 1);
  EXPECT_EQ(values["role standby"], 0);
  EXPECT_EQ(values["lease_seconds"], 0.75);
  EXPECT_EQ(values["heartbeat_age_seconds"], 0.25);
  EXPECT_EQ(values["clock_skew_seconds"], -0.125);
  EXPECT_EQ(values["nodes"], 3);
  EXPECT_EQ(values["ready_standbys"], 1);
  EXPECT_EQ(values["topic_faults"], 2);
  EXPECT_EQ(values["takeovers_total"], 3);
  EXPECT_EQ(values["replay_lag_messages"], 0);
  EXPECT_EQ(values["replay_lag_seconds"], 0);
}

TEST(ClusterMetricsTest, AnOwnerThatDoesNotServeIsNone) {
  ClusterTerm::Status status = StatusOfOwner();
  status.serving = false;
  EXPECT_EQ(ValuesOf(status)["owner"], 0);
  status.serving = true;
  status.member.lease_left = absl::Milliseconds(-250);
  EXPECT_EQ(ValuesOf(status)["owner"], 0);
  EXPECT_EQ(ValuesOf(status)["lease_seconds"], -0.25);
}

TEST(ClusterMetricsTest, AStandbyHasALagAndNoLease) {
  ClusterTerm::Status status = StatusOfOwner();
  status.member.role = MemberRole::kStandby;
  status.member.lease_left = -absl::InfiniteDuration();
  auto values = ValuesOf(status);
  EXPECT_EQ(values["owner"], 0);
  EXPECT_EQ(values["lease_seconds"], 0);
  EXPECT_EQ(values["replay_lag_messages"], 7);
  EXPECT_EQ(values["replay_lag_seconds"], 1.5);
}

TEST(SharedClusterMetricsTest, SlotsAreCounted) {
  SharedClusterStatus status;
  status.membership.nodes = {NodeNamed("a", true, false),
                             NodeNamed("b", true, false),
                             NodeNamed("c", true, true)};
  status.membership.since_heartbeat = absl::ZeroDuration();
  SlotStatus mine;
  mine.placement.owner = mine.placement.wanted_owner = "a";
  mine.placement.is_mine = mine.placement.host = true;
  mine.standbys = {NodeNamed("b", true, false)};
  mine.lease_left = absl::Milliseconds(750);
  SlotStatus moving = mine;
  moving.placement.wanted_owner = "b";
  moving.lease_left = absl::Milliseconds(500);
  SlotStatus other;
  other.placement.owner = other.placement.wanted_owner = "b";
  other.placement.host = true;
  other.standbys = {NodeNamed("a", false, false)};
  const SlotStatus ownerless;
  status.membership.slots = {mine, moving, other, ownerless};
  const PeerCounts peers;
  auto values = ValuesOf(SharedClusterMetrics(
      "eu", [&] { return status; }, &peers));
  EXPECT_EQ(values["owned_slots"], 2);
  EXPECT_EQ(values["standby_slots"], 1);
  EXPECT_EQ(values["ownerless_slots"], 1);
  EXPECT_EQ(values["slots_without_standby"], 2);
  EXPECT_EQ(values["moving_slots"], 1);
  EXPECT_EQ(values["lease_seconds"], 0.5);
  EXPECT_EQ(values["nodes"], 2);
  EXPECT_EQ(values["forwarded_calls_total"], 0);
}

}  // namespace
}  // namespace timecache::server

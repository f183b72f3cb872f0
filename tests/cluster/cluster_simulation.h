// Members of a cluster over a control log that delays, loses and delivers late, in
// simulated time.

#ifndef TIMECACHED_TESTS_CLUSTER_CLUSTER_SIMULATION_H_
#define TIMECACHED_TESTS_CLUSTER_CLUSTER_SIMULATION_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/cluster/control_log.h"
#include "server/cluster/member_logic.h"
#include "server/cluster/membership_logic.h"
#include "tests/support/engine/dice.h"

namespace timecache::server {

struct SimulationOptions {
  int members = 3;
  absl::Duration lease = absl::Seconds(1);
  absl::Duration failure_timeout = absl::Seconds(2);
  absl::Duration max_clock_skew = absl::Milliseconds(500);
  // Of each append and of each node's reading, at most.
  absl::Duration delay = absl::Milliseconds(20);
  int lost_per_mille = 0;
  // Arrive up to 30 s late, when the sender has given up.
  int late_per_mille = 0;
  // Of each node's wall clock against the brokers', at most.
  absl::Duration wall_skew = absl::ZeroDuration();
  // Of each boot clock, at most.
  int drift_ppm = 5'000;
  // Two brokers with clocks 10 s apart append in turns.
  bool erratic_brokers = false;
  // Of the log, for those who begin to read it.
  absl::Duration retention = absl::InfiniteDuration();
  // 0: one node owns all.
  int slots = 0;
  // The first so many nodes know of no slots, where there are some.
  int whole_members = 0;
  // Until a node that begins to host a slot has caught up, at most.
  absl::Duration replay = absl::Milliseconds(400);
  // The control: serve as soon as the takeover is in the log.
  bool skip_lease_wait = false;
};

// Time passes in steps of kStepUs. At each one, before and after every node's work, it
// counts the nodes whose lease holds while they serve, for each slot. Nodes host the
// slots that they are wanted for, and release them to who is wanted.
class ClusterSimulation {
 public:
  static constexpr int64_t kStepUs = 2'000;

  ClusterSimulation(SimulationOptions options, uint64_t seed);

  void RunFor(absl::Duration time);
  // Until one node serves each slot; the time that took, at most `limit`.
  absl::Duration AwaitOwner(absl::Duration limit);
  // Until each slot is served by the node that is wanted for it.
  absl::Duration AwaitPlacement(absl::Duration limit);
  // Until the node has this role, at most 10 s. Whether it has.
  bool AwaitRole(int node, MemberRole role);
  // As RunFor, with kills, pauses, outages, cut-off nodes, handovers.
  void RunDisturbed(absl::Duration time);

  // The node that serves the slot; -1: none.
  int owner(int slot = 0) const;
  // How many slots the node serves.
  int Owned(int node) const;
  void Kill(int node);
  void Restart(int node);
  // SIGSTOP and SIGCONT.
  void Pause(int node, absl::Duration time);
  // Neither appends nor reads.
  void Cut(int node, absl::Duration time);
  // Appends, and does not read.
  void Deafen(int node, absl::Duration time);
  // The brokers are away.
  void Outage(absl::Duration time);
  bool outage() const { return now_us_ < outage_until_us_; }
  // What is told of a wall clock.
  void SetWallSkew(int node, absl::Duration skew);
  void SetLag(int node, uint64_t messages);
  absl::Status Release(int node, const std::string& to, int slot = 0);
  // See ClusterMembership::Yield.
  void Yield(int node) { nodes_[node].logic->Yield(); }
  // See MembershipLogic.
  uint64_t SetHold(int node, bool holds, bool cuts);
  // How many slots have a node whose lease holds, and that does not know of a cut. A
  // paused one, too.
  int Unaware() const;
  int64_t boot_ns(int node) const { return BootNs(nodes_[node]); }
  // Appends heartbeats of a node that is none, as if the last `time` had counted.
  void CountSilence(absl::Duration time);

  const MemberLogic& logic(int node, int slot = 0) const {
    return nodes_[node].logic->At(slot);
  }
  const MembershipLogic& membership(int node) const {
    return *nodes_[node].logic;
  }
  static std::string Name(int node) { return std::string(1, 'a' + node); }
  const std::vector<ControlEntry>& log() const { return log_; }
  // How often two nodes served at a time.
  int64_t overlaps() const { return overlaps_; }
  // Takeovers that were sent by a node whose clock is wrong.
  int64_t skewed_takeovers() const { return skewed_takeovers_; }
  int64_t terms() const { return terms_; }

 private:
  // A slot of a node, or all that it owns.
  struct Part {
    bool serves = false;
    int64_t claimed_us = -1;
    int64_t renew_us = -1;
    bool hosts = false;
    // When it has caught up; -1: it has.
    int64_t replayed_us = -1;
  };
  struct Node {
    std::unique_ptr<MembershipLogic> logic;
    std::vector<Part> parts;
    bool shares = false;
    bool alive = false;
    int64_t follow_us = 0;
    int64_t boot_ppm = 0;
    int64_t boot_offset_us = 0;
    int64_t wall_skew_us = 0;
    int64_t paused_until_us = 0;
    int64_t cut_until_us = 0;
    int64_t deaf_until_us = 0;
    int64_t busy_until_us = 0;
    // As MemberLogic::NextNs said.
    int64_t next_ns = INT64_MIN;
    int64_t restart_us = -1;
    size_t read = 0;
    int64_t read_delay_us = 0;
  };
  struct Sent {
    ControlRecord record;
    int64_t arrives_us;
  };

  void Step();
  void Disturb();
  void Arrive();
  void Work(Node& node);
  void Read(Node& node);
  void Serve(Node& node, int slot);
  void Follow(Node& node);
  void FollowSlot(Node& node, int slot, const SlotPlacement& placement);
  bool Serves(const Node& node, int slot) const;
  int slots() const { return std::max(options_.slots, 1); }
  void Send(Node& node);
  void Check();
  void Append(const ControlRecord& record);
  void NewIncarnation(Node& node);
  int64_t BootNs(const Node& node) const;
  int64_t BrokerUs() const;
  int64_t Delay() {
    return dice_.Draw(0, absl::ToInt64Microseconds(options_.delay));
  }

  const SimulationOptions options_;
  Dice dice_;
  int64_t now_us_ = 1'000'000;
  int64_t outage_until_us_ = 0;
  int64_t broker_skew_us_ = 0;
  std::vector<Node> nodes_;
  std::vector<Sent> sent_;
  std::vector<ControlEntry> log_;
  std::vector<int64_t> appended_us_;
  int64_t overlaps_ = 0;
  int64_t skewed_takeovers_ = 0;
  int64_t terms_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_CLUSTER_CLUSTER_SIMULATION_H_

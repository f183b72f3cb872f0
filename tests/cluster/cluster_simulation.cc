#include "tests/cluster/cluster_simulation.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace timecache::server {
namespace {

// 2027-01-15T08:00:00Z.
constexpr int64_t kSimulationStartUs = 1'800'000'000'000'000;
// When the sender gives up.
constexpr int64_t kAppendTimeoutUs = 1'000'000;
constexpr int64_t kMaxLateUs = 30'000'000;
// After an outage a node's client finds the brokers again within.
constexpr int64_t kMaxReconnectUs = 500'000;
constexpr int64_t kBrokersApartUs = 10'000'000;
// How often a node looks at what it is wanted for.
constexpr int64_t kFollowUs = 50'000;

}  // namespace

ClusterSimulation::ClusterSimulation(SimulationOptions options, uint64_t seed)
    : options_(std::move(options)), dice_(seed), nodes_(options_.members) {
  for (Node& node : nodes_) {
    node.boot_ppm = dice_.Draw(-options_.drift_ppm, options_.drift_ppm);
    node.boot_offset_us = dice_.Draw(0, 1'000'000'000);
    const int64_t skew_us = absl::ToInt64Microseconds(options_.wall_skew);
    node.wall_skew_us = dice_.Draw(-skew_us, skew_us);
    NewIncarnation(node);
  }
}

void ClusterSimulation::NewIncarnation(Node& node) {
  MemberOptions member;
  member.node = Name(static_cast<int>(&node - nodes_.data()));
  member.incarnation = static_cast<uint64_t>(dice_.Draw(1, INT64_MAX));
  member.address = member.node + ":7600";
  member.lease = options_.lease;
  member.failure_timeout = options_.failure_timeout;
  member.max_clock_skew = options_.max_clock_skew;
  node.shares =
      options_.slots > 0 && &node - nodes_.data() >= options_.whole_members;
  node.logic = std::make_unique<MembershipLogic>(
      std::move(member), node.shares ? Sharing::kSlots : Sharing::kOneOwner,
      slots(),
      [this] { return static_cast<uint64_t>(dice_.Draw(1, INT64_MAX)); });
  node.parts.assign(static_cast<size_t>(node.logic->slots()), {});
  if (!node.shares) {
    node.logic->SetLag(0, 0, absl::ZeroDuration(), BootNs(node));
  }
  node.alive = true;
  node.busy_until_us = 0;
  node.next_ns = INT64_MIN;
  node.restart_us = -1;
  const absl::Duration passed = absl::Microseconds(now_us_);
  node.read = static_cast<size_t>(
      std::lower_bound(appended_us_.begin(), appended_us_.end(),
                       absl::ToInt64Microseconds(
                           passed - std::min(passed, options_.retention))) -
      appended_us_.begin());
}

int64_t ClusterSimulation::BootNs(const Node& node) const {
  const int64_t us = now_us_ + node.boot_offset_us;
  return us * 1'000 + us / 1'000 * node.boot_ppm;
}

int64_t ClusterSimulation::BrokerUs() const {
  return kSimulationStartUs + now_us_ + broker_skew_us_;
}

void ClusterSimulation::Append(const ControlRecord& record) {
  if (options_.erratic_brokers && dice_.Chance(300)) {
    broker_skew_us_ = kBrokersApartUs - broker_skew_us_;
  }
  ControlEntry& entry = log_.emplace_back();
  entry.offset = static_cast<int64_t>(log_.size()) - 1;
  entry.append_time_ms = BrokerUs() / 1'000;
  entry.record = record;
  appended_us_.push_back(now_us_);
}

void ClusterSimulation::Arrive() {
  if (sent_.empty()) return;
  // In the order of their arrival.
  std::stable_sort(
      sent_.begin(), sent_.end(),
      [](const Sent& a, const Sent& b) { return a.arrives_us < b.arrives_us; });
  size_t arrived = 0;
  for (; arrived < sent_.size() && sent_[arrived].arrives_us <= now_us_;
       ++arrived) {
    Append(sent_[arrived].record);
  }
  sent_.erase(sent_.begin(), sent_.begin() + static_cast<int64_t>(arrived));
}

void ClusterSimulation::Send(Node& node) {
  if (now_us_ < node.busy_until_us || BootNs(node) < node.next_ns) return;
  const int64_t wall_us = kSimulationStartUs + now_us_ + node.wall_skew_us;
  const std::optional<ControlRecord> record =
      node.logic->Next(BootNs(node), wall_us);
  if (record) node.logic->OnSent(*record, BootNs(node));
  node.next_ns = node.logic->NextNs();
  if (!record) return;
  if (record->kind() == cluster::v1::CONTROL_KIND_TAKEOVER) {
    const absl::Duration skew =
        absl::Microseconds(node.wall_skew_us - broker_skew_us_);
    // What a round trip is measured wrong by, and the brokers' milliseconds.
    if (absl::AbsDuration(skew) >
        options_.max_clock_skew + absl::Milliseconds(10)) {
      ++skewed_takeovers_;
    }
  }
  node.busy_until_us = now_us_ + kAppendTimeoutUs;
  int64_t arrives_us = now_us_ + Delay();
  const int64_t away_until_us = std::max(node.cut_until_us, outage_until_us_);
  if (arrives_us < away_until_us) {
    // Sent again by the client once it reaches the brokers, unless it gave up.
    arrives_us = away_until_us + dice_.Draw(0, kMaxReconnectUs);
    if (arrives_us > node.busy_until_us) return;
  }
  if (dice_.Chance(options_.lost_per_mille)) return;
  if (dice_.Chance(options_.late_per_mille)) {
    sent_.push_back({*record, arrives_us + dice_.Draw(0, kMaxLateUs)});
    return;
  }
  sent_.push_back({*record, arrives_us});
  node.busy_until_us = std::min(node.busy_until_us, arrives_us + kStepUs);
}

void ClusterSimulation::Read(Node& node) {
  if (now_us_ <
      std::max({node.cut_until_us, node.deaf_until_us, outage_until_us_})) {
    return;
  }
  if (dice_.Chance(100)) node.read_delay_us = Delay();
  while (node.read < log_.size() &&
         appended_us_[node.read] + node.read_delay_us <= now_us_) {
    node.logic->OnEntry(log_[node.read++], BootNs(node));
    node.next_ns = INT64_MIN;
  }
}

void ClusterSimulation::Serve(Node& node, int slot) {
  MemberLogic& member = node.logic->At(slot);
  Part& part = node.parts[static_cast<size_t>(slot)];
  if (member.role() == MemberRole::kTakingOver) {
    if (part.claimed_us < 0) part.claimed_us = now_us_ + Delay();
    if (now_us_ >= part.claimed_us &&
        (options_.skip_lease_wait ||
         BootNs(node) >= member.former_lease_end_ns())) {
      member.BeginService(BootNs(node));
      ++terms_;
    }
  }
  part.serves = member.role() == MemberRole::kOwner;
  if (member.role() != MemberRole::kEnded) return;
  if (!node.shares) {
    if (node.restart_us < 0) {
      node.restart_us = now_us_ + dice_.Draw(0, 500'000);
    }
  } else if (part.renew_us < 0) {
    part.renew_us = now_us_ + dice_.Draw(0, 500'000);
  } else if (part.renew_us <= now_us_) {
    node.logic->Renew(slot);
    node.next_ns = INT64_MIN;
    part = {};
  }
}

void ClusterSimulation::Follow(Node& node) {
  if (now_us_ < node.follow_us) return;
  node.follow_us = now_us_ + kFollowUs;
  const std::vector<SlotPlacement> placement = node.logic->GetPlacement();
  for (int slot = 0; slot < slots(); ++slot) {
    FollowSlot(node, slot, placement[static_cast<size_t>(slot)]);
  }
}

void ClusterSimulation::FollowSlot(Node& node, int slot,
                                   const SlotPlacement& placement) {
  Part& part = node.parts[static_cast<size_t>(slot)];
  if (node.logic->At(slot).role() == MemberRole::kEnded) return;
  if (placement.host && !part.hosts) {
    part.hosts = true;
    part.replayed_us =
        now_us_ + dice_.Draw(0, absl::ToInt64Microseconds(options_.replay));
    node.logic->SetLag(slot, 1'000'000, absl::InfiniteDuration(), BootNs(node));
  } else if (!placement.host && part.hosts) {
    node.logic->Renew(slot);
    node.next_ns = INT64_MIN;
    part = {};
  }
  if (part.replayed_us >= 0 && part.replayed_us <= now_us_) {
    node.logic->SetLag(slot, 0, absl::ZeroDuration(), BootNs(node));
    part.replayed_us = -1;
  }
  const std::string& wanted = placement.wanted_owner;
  // Taken here: a member that was renewed is another one.
  MemberLogic& member = node.logic->At(slot);
  if (member.role() == MemberRole::kOwner && !wanted.empty() &&
      wanted != Name(static_cast<int>(&node - nodes_.data())) &&
      member.CheckSuccessor(wanted).ok()) {
    node.next_ns = INT64_MIN;
    member.BeginRelease(wanted).IgnoreError();
  }
}

void ClusterSimulation::Work(Node& node) {
  if (node.restart_us >= 0 && now_us_ >= node.restart_us) NewIncarnation(node);
  if (!node.alive || now_us_ < node.paused_until_us) return;
  Read(node);
  for (int slot = 0; slot < node.logic->slots(); ++slot) Serve(node, slot);
  if (node.shares) Follow(node);
  Send(node);
  node.logic->TakeEvents();
}

// Who owns all, each slot.
bool ClusterSimulation::Serves(const Node& node, int slot) const {
  const int of = node.shares ? slot : 0;
  return node.alive && node.parts[static_cast<size_t>(of)].serves &&
         BootNs(node) < node.logic->At(of).lease_end_ns();
}

int ClusterSimulation::owner(int slot) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (Serves(nodes_[i], slot)) return static_cast<int>(i);
  }
  return -1;
}

int ClusterSimulation::Owned(int node) const {
  int owned = 0;
  for (int slot = 0; slot < slots(); ++slot) {
    if (Serves(nodes_[static_cast<size_t>(node)], slot)) ++owned;
  }
  return owned;
}

// A paused node, too: its first call after the pause comes before all that it reads.
void ClusterSimulation::Check() {
  for (int slot = 0; slot < slots(); ++slot) {
    const auto serving =
        std::count_if(nodes_.begin(), nodes_.end(),
                      [&](const Node& node) { return Serves(node, slot); });
    if (serving > 1) ++overlaps_;
  }
}

void ClusterSimulation::Step() {
  now_us_ += kStepUs;
  Arrive();
  Check();
  for (Node& node : nodes_) Work(node);
  Check();
}

void ClusterSimulation::RunFor(absl::Duration time) {
  const int64_t end_us = now_us_ + absl::ToInt64Microseconds(time);
  while (now_us_ < end_us) Step();
}

absl::Duration ClusterSimulation::AwaitOwner(absl::Duration limit) {
  const int64_t start_us = now_us_;
  const auto all_owned = [this] {
    for (int slot = 0; slot < slots(); ++slot) {
      if (owner(slot) < 0) return false;
    }
    return true;
  };
  while (!all_owned() && absl::Microseconds(now_us_ - start_us) < limit) {
    Step();
  }
  return absl::Microseconds(now_us_ - start_us);
}

absl::Duration ClusterSimulation::AwaitPlacement(absl::Duration limit) {
  const int64_t start_us = now_us_;
  const auto is_placed = [this] {
    for (int slot = 0; slot < slots(); ++slot) {
      const int node = owner(slot);
      if (node < 0) return false;
      const auto wanted = membership(node).GetPlacement()[slot];
      if (wanted.wanted_owner != Name(node)) return false;
    }
    return true;
  };
  while (!is_placed() && absl::Microseconds(now_us_ - start_us) < limit) {
    Step();
  }
  return absl::Microseconds(now_us_ - start_us);
}

bool ClusterSimulation::AwaitRole(int node, MemberRole role) {
  const int64_t end_us = now_us_ + 10'000'000;
  while (logic(node).role() != role && now_us_ < end_us) Step();
  return logic(node).role() == role;
}

void ClusterSimulation::RunDisturbed(absl::Duration time) {
  const int64_t end_us = now_us_ + absl::ToInt64Microseconds(time);
  while (now_us_ < end_us) {
    if (dice_.Chance(2)) Disturb();
    Step();
  }
}

void ClusterSimulation::Disturb() {
  // Half of the time the owner.
  const int slot = static_cast<int>(dice_.Draw(0, slots() - 1));
  const int serving = owner(slot);
  const int node = serving >= 0 && dice_.Chance(500)
                       ? serving
                       : static_cast<int>(dice_.Index(nodes_.size()));
  const absl::Duration time = absl::Microseconds(dice_.Draw(0, 6'000'000));
  switch (dice_.Draw(0, 9)) {
    case 0:
      Kill(node);
      nodes_[node].restart_us = now_us_ + absl::ToInt64Microseconds(time);
      return;
    case 1:
    case 2:
      return Pause(node, time);
    case 3:
    case 4:
      return Cut(node, time);
    case 5:
    case 6:
      return Deafen(node, time);
    case 7:
      return Outage(time * 2);
    case 8:
      Release(node, dice_.Chance(500) ? "" : Name(0), slot).IgnoreError();
      return;
    default:
      if (options_.slots == 0) {
        SetLag(node, dice_.Chance(500) ? 0 : 1'000'000);
      }
  }
}

void ClusterSimulation::Kill(int node) { nodes_[node].alive = false; }

void ClusterSimulation::Restart(int node) { NewIncarnation(nodes_[node]); }

void ClusterSimulation::Pause(int node, absl::Duration time) {
  nodes_[node].paused_until_us = now_us_ + absl::ToInt64Microseconds(time);
}

void ClusterSimulation::Cut(int node, absl::Duration time) {
  nodes_[node].cut_until_us = now_us_ + absl::ToInt64Microseconds(time);
}

void ClusterSimulation::Deafen(int node, absl::Duration time) {
  nodes_[node].deaf_until_us = now_us_ + absl::ToInt64Microseconds(time);
}

void ClusterSimulation::Outage(absl::Duration time) {
  outage_until_us_ = now_us_ + absl::ToInt64Microseconds(time);
}

void ClusterSimulation::SetWallSkew(int node, absl::Duration skew) {
  nodes_[node].wall_skew_us = absl::ToInt64Microseconds(skew);
}

void ClusterSimulation::SetLag(int node, uint64_t messages) {
  nodes_[node].logic->SetLag(0, messages, absl::ZeroDuration(),
                             BootNs(nodes_[node]));
}

absl::Status ClusterSimulation::Release(int node, const std::string& to,
                                        int slot) {
  nodes_[node].next_ns = INT64_MIN;
  MembershipLogic& logic = *nodes_[node].logic;
  return logic.At(std::min(slot, logic.slots() - 1)).BeginRelease(to);
}

uint64_t ClusterSimulation::SetHold(int node, bool holds, bool cuts) {
  nodes_[node].next_ns = INT64_MIN;
  return nodes_[node].logic->SetHold(holds, cuts);
}

int ClusterSimulation::Unaware() const {
  int unaware = 0;
  for (const Node& node : nodes_) {
    if (!node.alive || node.logic->IsCut()) continue;
    for (int slot = 0; slot < node.logic->slots(); ++slot) {
      if (BootNs(node) < node.logic->At(slot).lease_end_ns()) ++unaware;
    }
  }
  return unaware;
}

void ClusterSimulation::CountSilence(absl::Duration time) {
  const int64_t end_us = now_us_;
  ControlRecord record;
  record.set_node("none");
  record.set_kind(cluster::v1::CONTROL_KIND_HEARTBEAT);
  record.set_lease_us(absl::ToInt64Microseconds(options_.lease));
  record.set_failure_timeout_us(
      absl::ToInt64Microseconds(options_.failure_timeout));
  now_us_ -= absl::ToInt64Microseconds(time);
  while (now_us_ < end_us) {
    Append(record);
    appended_us_.back() = end_us;
    now_us_ = std::min(end_us,
                       now_us_ + absl::ToInt64Microseconds(options_.lease / 4));
  }
}

}  // namespace timecache::server

#include "server/cluster/membership_logic.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cluster/slot_records.h"

namespace timecache::server {
namespace {

using cluster::v1::CONTROL_KIND_HEARTBEAT;
using cluster::v1::CONTROL_KIND_TAKEOVER;
using cluster::v1::ControlKind;

MemberOptions Reincarnated(MemberOptions options, uint64_t incarnation) {
  options.incarnation = incarnation;
  return options;
}

bool IsOfNode(MemberEvent::Kind kind) {
  return kind == MemberEvent::Kind::kClockSkewed ||
         kind == MemberEvent::Kind::kClockRight ||
         kind == MemberEvent::Kind::kLogLost;
}

}  // namespace

MembershipLogic::MembershipLogic(MemberOptions options, Sharing sharing,
                                 int slots, std::function<uint64_t()> random)
    : options_(std::move(options)), random_(std::move(random)) {
  if (sharing == Sharing::kOneOwner) {
    members_.push_back(std::make_unique<MemberLogic>(options_));
    return;
  }
  for (int slot = 0; slot < slots; ++slot) {
    members_.push_back(
        std::make_unique<MemberLogic>(Reincarnated(options_, random_()),
                                      /*one_of_a_name=*/true));
  }
  cluster_ = std::make_unique<MemberLogic>(options_);
  Prefer();
}

// --- What was read.

void MembershipLogic::OnEntry(const ControlEntry& entry, int64_t now_ns) {
  if (!shares()) return At(0).OnEntry(entry, now_ns);
  ControlEntry part{entry.offset, entry.append_time_ms,
                    WholeRecord(entry.record)};
  cluster_->OnEntry(part, now_ns);
  cluster_->SetJournal(cluster_->state().journal_id());
  NoteForeign(part.record, now_ns);
  if (cluster_->role() == MemberRole::kEnded) RenewCluster(now_ns);
  NoteSaid(part.record);
  const bool open = IsOpen();
  std::vector<ControlRecord> records = RecordsOfSlots(entry.record, slots());
  for (int slot = 0; slot < slots(); ++slot) {
    part.record = std::move(records[static_cast<size_t>(slot)]);
    At(slot).SetClosed(!open);
    At(slot).OnEntry(part, now_ns);
  }
  Prefer();
}

bool MembershipLogic::IsOpen() const {
  const ControlRecord* const owner = cluster_->state().owner_record();
  return owner != nullptr && IsAlike(*owner);
}

void MembershipLogic::NoteForeign(const ControlRecord& whole, int64_t now_ns) {
  const ControlState& state = cluster_->state();
  const ControlRecord* const owner = state.owner_record();
  const bool is_foreign = !IsAlike(whole);
  const bool takes_over = is_foreign && whole.kind() == CONTROL_KIND_TAKEOVER;
  const bool foreign_owns = owner != nullptr && !IsAlike(*owner);
  // Of other slots each node may have a lease; and where it is not known who owns, any
  // record may be of a node that knows of one.
  const bool may_lease =
      (is_foreign && (takes_over || whole.slot_count() != 0 ||
                      state.IsOwner(whole.node(), whole.incarnation()))) ||
      (owner == nullptr && state.takeover() > 0);
  for (const auto& member : members_) {
    if (foreign_owns || takes_over) {
      member->Fence(foreign_owns ? owner->node() : whole.node());
    }
    if (may_lease) {
      member->NoteForeignLease(absl::Microseconds(whole.lease_us()), now_ns);
    }
  }
}

void MembershipLogic::RenewCluster(int64_t now_ns) {
  TakeEventsOf(kWholeNode);
  cluster_ = std::make_unique<MemberLogic>(*cluster_, random_());
  if (leaving_) cluster_->Yield();
  NoteClusterLag(now_ns);
}

void MembershipLogic::OnLogLost(const absl::Status& why) {
  for (const auto& member : members_) member->OnLogLost(why);
  if (shares()) cluster_->OnLogLost(why);
}

// --- What is to be appended.

bool MembershipLogic::IsMember(int slot) const {
  return At(slot).role() != MemberRole::kEnded &&
         At(slot).lag_messages().has_value();
}

std::optional<ControlRecord> MembershipLogic::Next(int64_t now_ns,
                                                   int64_t wall_us) {
  if (!shares()) return At(0).Next(now_ns, wall_us);
  const std::optional<ControlKind> kind = cluster_->Due(now_ns);
  bool due = kind.has_value();
  std::vector<ControlKind> kinds(members_.size(), CONTROL_KIND_HEARTBEAT);
  for (size_t i = 0; i < members_.size(); ++i) {
    const std::optional<ControlKind> of_slot = members_[i]->Due(now_ns);
    due = due || of_slot.has_value();
    kinds[i] = of_slot.value_or(CONTROL_KIND_HEARTBEAT);
  }
  if (!due) return std::nullopt;
  ++made_;
  ControlRecord record = cluster_->Make(kind.value_or(CONTROL_KIND_HEARTBEAT),
                                        made_, now_ns, wall_us);
  ShareRecord(slots(), leaving_, &record);
  record.set_holds_journal(holds_);
  record.set_cuts_journal(cuts_);
  for (int slot = 0; slot < slots(); ++slot) {
    AddSlot(
        slot,
        At(slot).Make(kinds[static_cast<size_t>(slot)], made_, now_ns, wall_us),
        IsMember(slot), &record);
  }
  return record;
}

void MembershipLogic::OnSent(const ControlRecord& record, int64_t now_ns) {
  if (!shares()) {
    return At(0).OnSent(record.kind(), record.number(), now_ns);
  }
  cluster_->OnSent(WholeRecord(record).kind(), record.number(), now_ns);
  const std::vector<ControlKind> kinds = KindsOfSlots(record, slots());
  for (size_t i = 0; i < members_.size(); ++i) {
    members_[i]->OnSent(kinds[i], record.number(), now_ns);
  }
}

int64_t MembershipLogic::NextNs() const {
  int64_t next_ns = shares() ? cluster_->NextNs() : INT64_MAX;
  for (const auto& member : members_) {
    next_ns = std::min(next_ns, member->NextNs());
  }
  return next_ns;
}

// --- What the node asks.

void MembershipLogic::SetLag(int slot, uint64_t messages, absl::Duration age,
                             int64_t now_ns) {
  At(slot).SetLag(messages, age, now_ns);
  NoteClusterLag(now_ns);
}

void MembershipLogic::NoteClusterLag(int64_t now_ns) {
  if (!shares()) return;
  std::optional<uint64_t> most;
  for (int slot = 0; slot < slots(); ++slot) {
    if (IsMember(slot)) most = std::max(most, At(slot).lag_messages());
  }
  if (most) cluster_->SetLag(*most, absl::InfiniteDuration(), now_ns);
}

void MembershipLogic::Renew(int slot) {
  TakeEventsOf(slot);
  std::unique_ptr<MemberLogic>& member = members_[static_cast<size_t>(slot)];
  member = std::make_unique<MemberLogic>(*member, random_());
  if (leaving_) member->Yield();
}

void MembershipLogic::Yield() {
  leaving_ = true;
  wanted_.assign(wanted_.size(), false);
  for (const auto& member : members_) member->Yield();
  if (shares()) cluster_->Yield();
}

// --- Who holds the journal.

uint64_t MembershipLogic::SetHold(bool holds, bool cuts) {
  holds_ = holds;
  cuts_ = cuts;
  if (shares()) cluster_->RequestRecord();
  return made_ + 1;
}

uint64_t MembershipLogic::read_number() const {
  return (shares() ? *cluster_ : *members_.front()).read_number();
}

void MembershipLogic::NoteSaid(const ControlRecord& record) {
  Said& said = said_[{record.node(), record.incarnation()}];
  if (record.number() >= said.number) {
    said = {record.number(), record.holds_journal(), record.cuts_journal()};
  }
  if (!IsLive()) ++lapses_;
  if (said_.size() <= ControlState::kMaxNodes) return;
  // Of processes that have ended.
  std::map<NodeKey, Said> live;
  cluster_->state().VisitLive([&](const ControlRecord& node) {
    const NodeKey key(node.node(), node.incarnation());
    live[key] = said_[key];
  });
  said_.swap(live);
}

bool MembershipLogic::AnySays(bool Said::*what) const {
  bool any = false;
  if (!shares()) return any;
  cluster_->state().VisitLive([&](const ControlRecord& node) {
    const auto said = said_.find({node.node(), node.incarnation()});
    any = any || (said != said_.end() && said->second.*what);
  });
  return any;
}

bool MembershipLogic::IsLive() const {
  bool live = false;
  cluster_->state().VisitLive([&](const ControlRecord& node) {
    live = live || (node.node() == options_.node &&
                    node.incarnation() == cluster_->incarnation());
  });
  return live;
}

absl::Duration MembershipLogic::LongestLease() const {
  absl::Duration longest = options_.lease;
  if (!shares()) return longest;
  cluster_->state().VisitLive([&](const ControlRecord& node) {
    longest = std::max(longest, absl::Microseconds(node.lease_us()));
  });
  return longest;
}

std::string MembershipLogic::WholeOwner() const {
  const ControlRecord* const owner =
      shares() ? cluster_->state().live_owner() : nullptr;
  return owner != nullptr && !IsAlike(*owner) ? owner->node() : "";
}

// --- Who is to own what.

std::vector<std::string> MembershipLogic::LiveNodes() const {
  std::vector<std::string> nodes;
  cluster_->state().VisitLive([&](const ControlRecord& node) {
    // Of a process that has just ended, too.
    const bool is_next = nodes.empty() || nodes.back() != node.node();
    if (is_next && IsAlike(node) && !node.leaving()) {
      nodes.push_back(node.node());
    }
  });
  return nodes;
}

std::vector<SlotHolders> MembershipLogic::Holders(
    const std::vector<std::string>& nodes) const {
  const auto is_node = [&](const std::string& name) {
    return std::binary_search(nodes.begin(), nodes.end(), name);
  };
  std::vector<SlotHolders> holders(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    const ControlState& state = members_[i]->state();
    const ControlRecord* const owner = state.live_owner();
    if (owner != nullptr && is_node(owner->node())) {
      holders[i].owner = owner->node();
      continue;
    }
    state.VisitLive([&](const ControlRecord& node) {
      if (node.has_lag_messages() && is_node(node.node())) {
        holders[i].standbys.push_back(node.node());
      }
    });
  }
  return holders;
}

void MembershipLogic::Prefer() {
  std::vector<std::string> nodes = LiveNodes();
  std::vector<SlotHolders> holders = Holders(nodes);
  if (nodes == nodes_ && holders == holders_ && !wishes_.empty()) return;
  nodes_ = std::move(nodes);
  holders_ = std::move(holders);
  wishes_ = PlaceSlots(nodes_, holders_);
  // One that was silent, and reads that, stands by for what it did until it is heard.
  const bool is_live =
      std::binary_search(nodes_.begin(), nodes_.end(), options_.node);
  wanted_.resize(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    const SlotWish& wish = wishes_[i];
    members_[i]->SetPreferred({wish.owner, wish.standby});
    if (!is_live && !leaving_) continue;
    wanted_[i] = wish.owner == options_.node || wish.standby == options_.node;
  }
}

std::vector<SlotPlacement> MembershipLogic::GetPlacement() const {
  std::vector<SlotPlacement> placement(members_.size());
  for (size_t i = 0; i < members_.size(); ++i) {
    const MemberLogic& member = *members_[i];
    SlotPlacement& slot = placement[i];
    if (const ControlRecord* const owner = member.state().live_owner();
        owner != nullptr) {
      slot.owner = owner->node();
      slot.owner_address = owner->address();
    }
    slot.is_mine = member.role() == MemberRole::kTakingOver ||
                   member.role() == MemberRole::kOwner;
    if (shares()) {
      slot.wanted_owner = wishes_[i].owner;
      slot.wanted_standby = wishes_[i].standby;
    }
    // Who has replayed it goes on until it has an owner that stays.
    slot.host =
        !shares() || slot.is_mine || wanted_[i] ||
        (!leaving_ &&
         (member.state().IsSuccessor(options_.node) ||
          (holders_[i].owner.empty() && IsMember(static_cast<int>(i)))));
  }
  return placement;
}

MembershipStatus MembershipLogic::Status(int64_t now_ns) const {
  MembershipStatus status;
  const MemberStatus whole =
      (shares() ? *cluster_ : *members_.front()).Status(now_ns);
  status.nodes = whole.view.nodes;
  status.clock_skew = whole.clock_skew;
  status.since_heartbeat = whole.since_heartbeat;
  status.whole_owner = WholeOwner();
  const std::vector<SlotPlacement> placement = GetPlacement();
  for (size_t i = 0; i < members_.size(); ++i) {
    MemberStatus member = members_[i]->Status(now_ns);
    SlotStatus& slot = status.slots.emplace_back();
    slot.placement = placement[i];
    for (ControlState::Node& node : member.view.nodes) {
      const bool owns = member.view.owner &&
                        node.name == member.view.owner->node.name &&
                        node.incarnation == member.view.owner->node.incarnation;
      if (!owns && !node.gone && node.lag_messages) {
        slot.standbys.push_back(std::move(node));
      }
    }
    slot.owner = std::move(member.view.owner);
    slot.role = member.role;
    slot.lease_left = member.lease_left;
    slot.successor = std::move(member.successor);
    slot.waits_for = std::move(member.waits_for);
    if (!status.whole_owner.empty()) {
      slot.waits_for =
          absl::StrCat("node ", status.whole_owner,
                       " owns all slots: its cluster.forward_calls is not that "
                       "of this node");
    }
  }
  return status;
}

// --- What happened.

void MembershipLogic::TakeEventsOf(int slot) {
  MemberLogic& member = slot == kWholeNode ? *cluster_ : At(slot);
  for (MemberEvent& event : member.TakeEvents()) {
    if (!shares() || IsOfNode(event.kind) == (slot == kWholeNode)) {
      events_.emplace_back(slot, std::move(event));
    }
  }
}

std::vector<std::pair<int, MemberEvent>> MembershipLogic::TakeEvents() {
  for (int slot = 0; slot < slots(); ++slot) TakeEventsOf(slot);
  if (shares()) TakeEventsOf(kWholeNode);
  return std::exchange(events_, {});
}

}  // namespace timecache::server

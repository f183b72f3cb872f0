// What a node does in a cluster of which it may own parts: no threads, no clock, no log
// of its own.

#ifndef TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_LOGIC_H_
#define TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_LOGIC_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/cluster/control_log.h"
#include "server/cluster/member_logic.h"
#include "server/cluster/member_options.h"
#include "server/cluster/membership_status.h"
#include "server/cluster/placement.h"

namespace timecache::server {

// Of one owner of all it is a MemberLogic alone, and its records are that one's.
//
// Of slots it is one for each, and one record of the node has a part for each
// (slot_records.h). Each is fed with its part as if that were all that there is in the
// log, and with what the record says of the node. So what MemberLogic says of why no two
// nodes serve at a time holds for each slot: the records of a slot are in the log's
// order, the same for all nodes; a slot's lease ends `lease` after a record was sent
// that has its part and was read back while the log up to it says that the node owns
// the slot; and that a record has other parts, too, changes nothing of when it was sent,
// read or appended.
//
// Nodes that know of no slots, as those with another configuration, may be in the same
// log. For them a cluster with slots is one whose owner is one of its nodes: a
// MemberLogic more, of the cluster as a whole, takes that over, as soon as the node has
// caught up with one slot. Takeovers of slots count only while the cluster's last owner
// is such a node (it may be gone). Who owns all takes over from that one, and:
//
// - It waits for the leases of all slots, as each record is a takeover to it, which does
//   not count (ShareRecord), and before whose lease ends no node serves.
// - A node that reads its takeover owns no slot any more, also if the takeover seems not
//   to count: the two may have begun to read at different places.
//
// The other way round, a node that takes the cluster over for slots does so when its
// owner is gone or has released, and who then takes over a slot waits for the lease of
// each record of such an owner that it has read.
//
// Costs, for each record that is applied, O(nodes) for each slot: with ten of them 2 us,
// and some 15 bytes of the record. Not thread-safe.
class MembershipLogic {
 public:
  // `random`: incarnations, of which none is 0.
  MembershipLogic(MemberOptions options, Sharing sharing, int slots,
                  std::function<uint64_t()> random);

  // See MemberLogic, as for all that have its names.
  void OnEntry(const ControlEntry& entry, int64_t now_ns);
  std::optional<ControlRecord> Next(int64_t now_ns, int64_t wall_us);
  void OnSent(const ControlRecord& record, int64_t now_ns);
  int64_t NextNs() const;
  void OnLogLost(const absl::Status& why);

  int slots() const { return static_cast<int>(members_.size()); }
  // Until the next Renew of it.
  MemberLogic& At(int slot) { return *members_[static_cast<size_t>(slot)]; }
  const MemberLogic& At(int slot) const {
    return *members_[static_cast<size_t>(slot)];
  }
  // See Member::SetLag.
  void SetLag(int slot, uint64_t messages, absl::Duration age, int64_t now_ns);
  // See ClusterMembership, as for all that follow.
  void Renew(int slot);
  void Yield();
  std::vector<SlotPlacement> GetPlacement() const;

  // Of slots: what each record says from now on. Returns the number of the first one
  // that does.
  uint64_t SetHold(bool holds, bool cuts);
  // See MemberLogic; of the node's records.
  uint64_t read_number() const;
  // Whether a node that is not gone holds the journal, or cuts it, by the latest of its
  // records that this one has read, as some arrive late.
  bool IsHeld() const { return AnySays(&Said::holds); }
  bool IsCut() const { return AnySays(&Said::cuts); }
  // Counts the entries after which all who have read them take this node for gone, or
  // have not heard of it.
  uint64_t lapses() const { return lapses_; }
  // Of all nodes that are not gone.
  absl::Duration LongestLease() const;

  MembershipStatus Status(int64_t now_ns) const;
  // What happened since the last call, in order for each slot; see ClusterMembership.
  std::vector<std::pair<int, MemberEvent>> TakeEvents();

 private:
  // Of a node, in the latest of its records.
  struct Said {
    uint64_t number = 0;
    bool holds = false;
    bool cuts = false;
  };
  using NodeKey = std::pair<std::string, uint64_t>;

  bool AnySays(bool Said::*what) const;
  bool shares() const { return cluster_ != nullptr; }
  bool IsAlike(const ControlRecord& record) const {
    return record.slot_count() == static_cast<uint32_t>(slots());
  }
  // Whether takeovers of slots count.
  bool IsOpen() const;
  void NoteSaid(const ControlRecord& record);
  bool IsLive() const;
  // The node that owns all slots, as it knows of none; empty: there is none now.
  std::string WholeOwner() const;
  void NoteForeign(const ControlRecord& whole, int64_t now_ns);
  void RenewCluster(int64_t now_ns);
  void NoteClusterLag(int64_t now_ns);
  void Prefer();
  std::vector<std::string> LiveNodes() const;
  std::vector<SlotHolders> Holders(const std::vector<std::string>& nodes) const;
  // Whether this node replays it.
  bool IsMember(int slot) const;
  void TakeEventsOf(int slot);

  const MemberOptions options_;
  const std::function<uint64_t()> random_;
  std::vector<std::unique_ptr<MemberLogic>> members_;
  // Of the cluster as a whole; null: one node owns all.
  std::unique_ptr<MemberLogic> cluster_;
  bool leaving_ = false;
  bool holds_ = false;
  bool cuts_ = false;
  // By name and incarnation.
  std::map<NodeKey, Said> said_;
  uint64_t lapses_ = 0;
  uint64_t made_ = 0;
  std::vector<std::pair<int, MemberEvent>> events_;

  // What the wish is for, and what it is.
  std::vector<std::string> nodes_;
  std::vector<SlotHolders> holders_;
  std::vector<SlotWish> wishes_;
  // Whether this node is in it, by slot.
  std::vector<bool> wanted_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_LOGIC_H_

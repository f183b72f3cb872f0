// This node's part in its cluster, where each slot may have an owner of its own.

#ifndef TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_H_
#define TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/cluster/boot_clock.h"
#include "server/cluster/control_log.h"
#include "server/cluster/member.h"
#include "server/cluster/member_options.h"
#include "server/cluster/membership_status.h"

namespace timecache::server {

class MembershipThread;

// The Members of all slots: one control log, one heartbeat, and a thread, which is all
// that uses the log. membership_logic.h says how it works. Thread-safe.
class ClusterMembership {
 public:
  // `slots` >= 1: those of the cluster; 1 if one node owns all. The log and the clock
  // are not owned, and must outlive this. `on_role` is called after each change of the
  // role of a slot, but for those of Renew; `on_event`, if it is not null, for the log:
  // both on the thread, without a lock. They must not block: the heartbeats wait for
  // them. What happens to the node, as to its clock, is kWholeNode's event, where slots
  // have owners of their own.
  ClusterMembership(MemberOptions options, Sharing sharing, int slots,
                    ControlLog* log, const BootClock* clock,
                    std::function<void(int slot, MemberRole)> on_role,
                    std::function<void(int slot, const MemberEvent&)> on_event);
  // As Stop.
  ~ClusterMembership();

  // See Member.
  void Start();
  void Stop();

  int slots() const;
  // Valid as long as this: the node's present term of the slot, each after the other.
  // Its Start and Stop are not to be called.
  Member* At(int slot);

  // The node's term of the slot is over, and it begins another as a node that does not
  // replay it, until it says SetLag: after the role has become kEnded, or when it hosts
  // the slot no more as a standby. An ownership that runs ends at once, without a
  // release. What waits for that term ends: CANCELLED, or not confirmed.
  void Renew(int slot);

  // The node is about to end: it is wanted for nothing any more, and not ready for any
  // slot. It goes on to own what it owns: that is to be released.
  void Yield();

  // By slot. Changes as nodes come and go and own: to be asked some times a second.
  // Costs O(slots). A slot that is_mine while another node is wanted for it is to be
  // released to that one, once Member::CheckSuccessor says that it is ready.
  std::vector<SlotPlacement> GetPlacement() const;
  // Of where calls of the slot are to go: its owner, or the node to which it is being
  // handed over; empty: not known, or this node. Costs a lock and a copy.
  std::string OwnerAddress(int slot) const;

  // Of slots with owners of their own. From now on, for `most` at most, this node says
  // that it holds the journal and cuts it (control.proto), until EndCut and EndHold.
  // Returns the number of the hold, which is valid until EndHold.
  uint64_t BeginHold(absl::Duration most);
  // Waits for a record that says so to come back, and then for the longest lease of a
  // node: each owner whose lease runs has read it then, as it has read all that is
  // older than its lease. UNAVAILABLE: the record does not come within `timeout`; or see
  // CheckHold.
  absl::Status AwaitHold(uint64_t hold, absl::Duration timeout);
  // Waits for a record that says so to come back. OK: no node took the journal for one
  // that is not cut from AwaitHold to this call. Errors as AwaitHold's.
  absl::Status EndCut(uint64_t hold, absl::Duration timeout);
  void EndHold(uint64_t hold);
  // DEADLINE_EXCEEDED: its time is over. UNAVAILABLE: other nodes have taken this one for
  // gone, and the journal for one that nobody holds.
  absl::Status CheckHold(uint64_t hold) const;
  // Whether this node may delete records of the slot that its checkpoint has given up,
  // and may settle an event whose dead letter is stored in another slot: it has a lease,
  // and no node holds, or cuts, the journal. Costs two loads and a read of the clock.
  bool MayTrim(int slot) const;
  bool MaySettle(int slot) const;

  // Costs O(slots * nodes).
  MembershipStatus GetStatus() const;

 private:
  const std::unique_ptr<MembershipThread> thread_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_H_

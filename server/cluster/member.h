// This node's part in its cluster, or in a slot of it: heartbeats, and who owns.

#ifndef TIMECACHED_SERVER_CLUSTER_MEMBER_H_
#define TIMECACHED_SERVER_CLUSTER_MEMBER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/cluster/boot_clock.h"
#include "server/cluster/control_log.h"
#include "server/cluster/member_options.h"

namespace timecache::server {

class MembershipThread;

// Thread-safe.
class Member {
 public:
  using Status = MemberStatus;

  // Of a cluster that one node owns: a ClusterMembership of its own, and a thread, which is all
  // that uses the log. None is owned; all must outlive this. `on_change` is called after
  // each change of the role, `on_event`, if it is not null, for the log: both on that
  // thread, without its lock. They must not block: the heartbeats wait for them.
  Member(MemberOptions options, ControlLog* log, const BootClock* clock,
         std::function<void(MemberRole)> on_change,
         std::function<void(const MemberEvent&)> on_event = nullptr);
  // Of a slot: see ClusterMembership::At.
  Member(MembershipThread* thread, int slot);
  // As Stop.
  ~Member();

  // Once.
  void Start();
  // Ends the thread: from then on nothing is called, and the role does not change.
  // Without a release: others take the node for dead.
  void Stop();

  // How many messages the replay is behind, and how old the oldest of them is, at
  // most (infinite: not known): in each heartbeat. A node takes over only once it has
  // said so; one that is further behind leaves others the first chance.
  void SetLag(uint64_t messages, absl::Duration age = absl::ZeroDuration());
  // Which journal it replays, or has claimed (KafkaJournal::id); 0: not known yet.
  // A node whose journal is another one than the last owner's does not take over.
  void SetJournal(uint64_t id);

  // Of a standby that is about to end, or not to host the slot: other nodes are told at once that it is not
  // ready, so that none hands over to it, and those that are ready take over before it.
  void Yield();

  MemberRole role() const;
  // When the lease of the owner before cannot run any more: then, and when the
  // replay is finished, the node may serve. Blocks until then; CANCELLED if the
  // role ends first.
  absl::Status AwaitFormerLease();
  // After AwaitFormerLease. Does nothing if the role has ended.
  void BeginService();

  // OK while the node serves and its lease holds. UNAVAILABLE (NOT_OWNER)
  // otherwise, with the address of the owner, or of the standby to which it hands
  // over, if it is known. Costs an atomic load and a read of the clock, without a
  // lock, if OK.
  absl::Status CheckService() const;
  // Whether no other node serves: as CheckService, also before BeginService and
  // after EndService.
  bool HoldsLease() const;

  // Calls `done` with true once a record that was sent after this call has come back
  // from the control log, and the log up to it says that this node owns: no clock is
  // in it. With false when the role ends first, or has. On the member's thread, as
  // `on_change`; or before it returns; or never, once this is being destroyed.
  void Confirm(std::function<void(bool owns)> done);

  // Stops the service at once (CheckService), for good: before what is open is
  // flushed and released.
  void EndService();
  // Ends the lease, and appends the release: to the node of this name, or ("") to
  // the standby that is furthest, or to any, if none has caught up. Blocks until it
  // is in the log, at most `timeout`: then DEADLINE_EXCEEDED, and it may be there
  // later. FAILED_PRECONDITION, and nothing is done: this node does not own, there is
  // no such standby, or it would not take over. The role ends with it.
  absl::Status Release(const std::string& to, absl::Duration timeout);
  // FAILED_PRECONDITION: no standby of this name (""; at all) would take over at once.
  absl::Status CheckSuccessor(const std::string& to) const;

  Status GetStatus() const;

 private:
  // Of the first constructor; null: that of a ClusterMembership.
  const std::unique_ptr<MembershipThread> own_;
  MembershipThread& thread_;
  const int slot_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_MEMBER_H_

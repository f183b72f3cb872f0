// This node's part in its cluster: heartbeats, and who owns.

#ifndef TIMECACHED_SERVER_CLUSTER_MEMBER_H_
#define TIMECACHED_SERVER_CLUSTER_MEMBER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/cluster/control_log.h"
#include "server/cluster/control_state.h"

namespace timecache::server {

struct MemberOptions {
  std::string node;
  // Random: a process, and each ownership of it, is one of its own.
  uint64_t incarnation = 0;
  // host:port for clients.
  std::string address;
  std::string version;
  absl::Duration lease = absl::Seconds(1);
  absl::Duration failure_timeout = absl::Seconds(2);
  absl::Duration max_clock_skew = absl::Milliseconds(500);
};

// What the node is to do. Each is followed only by later ones.
enum class MemberRole {
  // Replay the journal.
  kStandby,
  // Its takeover is in the control log: claim the journal, finish the replay.
  kTakingOver,
  // Serve, while the lease holds: from BeginService on.
  kOwner,
  // Another node has taken over, or it has released: this incarnation is over.
  kEnded,
};

// Runs a thread of its own. Thread-safe.
class Member {
 public:
  // None is owned; all must outlive this. `on_change` is called on the member's
  // thread after each change of the role, and must not block.
  Member(MemberOptions options, ControlLog* log, const BootClock* clock,
         std::function<void(MemberRole)> on_change);
  // Without a release: others take it for dead.
  ~Member();

  void Start();

  // How many messages the replay is behind: in each heartbeat. A node takes over
  // only once it has said so; one that is further behind leaves others the first
  // chance.
  void SetLag(uint64_t messages);

  MemberRole role() const;
  // When the lease of the owner before cannot run any more: then, and when the
  // replay is finished, the node may serve. Blocks until then; CANCELLED if the
  // role ends first.
  absl::Status AwaitFormerLease();
  void BeginService();

  // OK while the node serves and its lease holds. UNAVAILABLE (NOT_OWNER)
  // otherwise, with the owner's address if another one owns. Costs an atomic load
  // and a read of the clock, without a lock.
  absl::Status CheckService() const;
  bool HoldsLease() const;

  // Stops the service at once (CheckService), for good: before what is open is
  // flushed and released.
  void EndService();
  // Appends the release, to the node of this name, or to any ("", the standby
  // that is furthest). Blocks until it is in the log, at most `timeout`.
  // FAILED_PRECONDITION: no such standby, or it is not caught up; the service then
  // has not ended.
  absl::Status Release(const std::string& to, absl::Duration timeout);
  // The same question, without a release.
  absl::Status CheckSuccessor(const std::string& to) const;

  struct Status {
    ControlState::View view;
    MemberRole role = MemberRole::kStandby;
    // Until the lease ends; negative: since.
    absl::Duration lease_left = absl::ZeroDuration();
    // This machine's clock minus the brokers', as of the last heartbeat; from it
    // alone a node cannot tell a skew from a slow broker below some milliseconds.
    absl::Duration clock_skew = absl::ZeroDuration();
    // Since the last heartbeat that was read from the log.
    absl::Duration since_heartbeat = absl::ZeroDuration();
    // What keeps it from taking over, in words; empty: nothing.
    std::string waits_for;
  };
  Status GetStatus() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_MEMBER_H_

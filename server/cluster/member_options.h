// What a member of a cluster is given, and what it says.

#ifndef TIMECACHED_SERVER_CLUSTER_MEMBER_OPTIONS_H_
#define TIMECACHED_SERVER_CLUSTER_MEMBER_OPTIONS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/cluster/control_state.h"

namespace timecache::server {

// The ranges are those of ClusterConfig.
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
  // Another node has taken over, it has released, or the log is lost: this
  // incarnation is over.
  kEnded,
};

// For the log.
struct MemberEvent {
  enum class Kind {
    // `node` has taken over from `former` ("" if there was none), which had
    // released, if `released`; else it was silent, or did not read, for `duration` by
    // the log.
    kTakeover,
    // `node` has released, to `successor` ("": any).
    kRelease,
    // This node was the owner, and `node` has taken over: nothing that it does from
    // now on counts.
    kFenced,
    // A takeover of this node did not count.
    kTakeoverRefused,
    // This machine's clock is ahead of the brokers' by `duration` (negative: behind),
    // which is too much for a takeover; and no longer.
    kClockSkewed,
    kClockRight,
    // The lease has ended, as no heartbeat came back in time: the node does not
    // serve. And it holds again, after `duration`.
    kLeaseLate,
    kLeaseRenewed,
    // The control log can be read no more, as `reason` says.
    kLogLost,
  };
  Kind kind = Kind::kTakeover;
  std::string node;
  std::string former;
  std::string successor;
  bool released = false;
  absl::Duration duration = absl::ZeroDuration();
  std::string reason;
};

struct MemberStatus {
  ControlState::View view;
  MemberRole role = MemberRole::kStandby;
  // Until the lease ends; negative: since. -InfiniteDuration: it had none.
  absl::Duration lease_left = -absl::InfiniteDuration();
  // This machine's clock minus the brokers', of the last heartbeats; true to half a
  // heartbeat's way to the log and back.
  absl::Duration clock_skew = absl::ZeroDuration();
  // Since the last heartbeat that was read from the log; infinite: none was.
  absl::Duration since_heartbeat = absl::InfiniteDuration();
  // To whom it has released, or the standby that a release without a name would
  // choose; empty: none.
  std::string successor;
  // What keeps it from taking over, in words; empty: nothing.
  std::string waits_for;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_MEMBER_OPTIONS_H_

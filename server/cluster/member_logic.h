// What a node of a cluster does and when: no threads, no clock, no log of its own.

#ifndef TIMECACHED_SERVER_CLUSTER_MEMBER_LOGIC_H_
#define TIMECACHED_SERVER_CLUSTER_MEMBER_LOGIC_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/cluster/control_log.h"
#include "server/cluster/control_state.h"
#include "server/cluster/member_options.h"

namespace timecache::server {

// Fed with the entries of the control log in their order; says what to append. Why
// no two nodes serve at a time:
//
// - The owner's lease ends `lease` after it sent the last of its records that it has
//   read back, while the log up to it says that it owns.
// - Whoever takes over has read all records of the owner before its takeover. It waits
//   for the lease, and 1 % and 10 ms more, from when it read the last one: which was
//   later than the owner sent it, whatever the clocks say. A release is appended after
//   the owner has stopped to serve, and when it need not wait for those before it.
//
// `now_ns` is BootClock's, `wall_us`, too. Not thread-safe.
class MemberLogic {
 public:
  // Messages of the journal still to replay with which a standby counts as caught up:
  // some tenths of a second of replay.
  static constexpr uint64_t kCaughtUpMessages = 1'000;
  // Between the candidates for a takeover.
  static constexpr absl::Duration kRankDelay = absl::Milliseconds(100);
  // Of two machines' clocks over a lease: each is right to 0.5 %.
  static constexpr int64_t kDriftDivisor = 100;
  static constexpr absl::Duration kLeaseMargin = absl::Milliseconds(10);
  // Heartbeats from which the skew is known: that of the shortest round trip counts.
  static constexpr size_t kSkewSamples = 8;
  // After so long a lease from now on cannot run any more, by whichever clock.
  static int64_t SafeLeaseNs(absl::Duration lease);

  // `one_of_a_name`: see ControlState.
  explicit MemberLogic(MemberOptions options, bool one_of_a_name = false);
  // The node's next term: it has read what `former` has, and replays nothing yet.
  MemberLogic(const MemberLogic& former, uint64_t incarnation);

  void OnEntry(const ControlEntry& entry, int64_t now_ns);
  // The record to append now, if one is due. When the log has taken it: OnSent.
  std::optional<ControlRecord> Next(int64_t now_ns, int64_t wall_us);
  // Both halves of it: of which kind a record is due; and a record, of a number that is
  // higher than those before.
  std::optional<cluster::v1::ControlKind> Due(int64_t now_ns);
  ControlRecord Make(cluster::v1::ControlKind kind, uint64_t number,
                     int64_t now_ns, int64_t wall_us);
  void OnSent(cluster::v1::ControlKind kind, uint64_t number, int64_t now_ns);
  // When to call Next again, if there are no entries before.
  int64_t NextNs() const;
  // The log can be read no more.
  void OnLogLost(const absl::Status& why);

  // A node that does not know of this one owns all: see MembershipLogic.
  void Fence(const std::string& by);
  // A lease of such a node, from now on at most, which a takeover has to wait for.
  void NoteForeignLease(absl::Duration lease, int64_t now_ns);
  // See ControlState.
  void SetClosed(bool closed) { state_.SetClosed(closed); }
  // These take over before others that are as ready, in this order. Else it goes by
  // name.
  void SetPreferred(std::vector<std::string> nodes) {
    preferred_ = std::move(nodes);
  }

  // See Member::SetLag.
  void SetLag(uint64_t messages, absl::Duration age, int64_t now_ns);
  void SetJournal(uint64_t id) { journal_id_ = id; }
  // See Member::Yield.
  void Yield() {
    yields_ = true;
    RequestRecord();
  }
  // Has a record appended at once. One of this number, or a later one, is made after
  // the call.
  uint64_t RequestRecord() { return wanted_ = made_ + 1; }
  // The last number of a record that was read back while the log up to it said that
  // this node owns; 0: none.
  uint64_t confirmed() const { return confirmed_; }
  // The last number of a record that was read back, whoever owns; 0: none.
  uint64_t read_number() const { return read_number_; }
  // See Member::BeginService.
  void BeginService(int64_t now_ns);
  // Ends the lease, and has a release appended until it is read back. See
  // Member::Release.
  absl::Status BeginRelease(const std::string& to);
  absl::Status CheckSuccessor(const std::string& to) const;

  MemberRole role() const { return role_; }
  uint64_t incarnation() const { return options_.incarnation; }
  // See SetLag. None: it does not replay.
  std::optional<uint64_t> lag_messages() const { return lag_messages_; }
  // Whether the last takeover is this node's.
  bool IsOwner() const;
  // Of this node; INT64_MIN: it has none.
  int64_t lease_end_ns() const { return lease_end_ns_; }
  // When no lease of an owner before can run any more.
  int64_t former_lease_end_ns() const { return former_lease_end_ns_; }
  // Where calls are to go: to the owner, or to the node to which this one or another
  // hands over; empty: not known.
  std::string OwnerAddress() const;
  // Whether the release of BeginRelease has been read.
  bool released() const { return release_read_; }
  const ControlState& state() const { return state_; }
  MemberStatus Status(int64_t now_ns) const;
  // What happened since the last call, in order.
  std::vector<MemberEvent> TakeEvents();

 private:
  struct SkewSample {
    // If the way to the log is as long as that back.
    int64_t skew_us;
    int64_t round_trip_us;
  };

  bool IsMine(const ControlRecord& record) const;
  MemberEvent& Add(MemberEvent::Kind kind, const std::string& node);
  void NoteOwner(const ControlRecord& record,
                 const std::optional<ControlState::Owner>& before,
                 int64_t now_ns);
  void NoteFormerLease(const ControlRecord& record,
                       const std::optional<ControlState::Owner>& owner,
                       bool released_now, int64_t now_ns);
  void NoteOwn(const ControlEntry& entry, int64_t now_ns);
  void NoteSkew(const ControlEntry& entry, int64_t now_ns);
  void NoteVacancy(int64_t now_ns);
  void NoteLease(int64_t now_ns);
  // Null: none yet.
  const SkewSample* BestSkew() const;
  bool ClockIsRight() const;
  bool IsReady() const;
  bool HasTheJournal() const {
    return state_.journal_id() == 0 || state_.journal_id() == journal_id_;
  }
  // Of those that would take over at once; empty: there is none.
  std::string FurthestStandby() const;
  // When this node takes over; none: not, for the reason in `*why`, if it is given.
  std::optional<int64_t> TakeoverNs(std::string* why) const;
  int64_t CandidateDelayNs() const;
  // The place among those that would take over.
  std::pair<size_t, std::string> Precedence(const std::string& node) const;
  int64_t ReleaseNs() const;
  int64_t HeartbeatNs() const { return lease_ns_ / 4; }

  const MemberOptions options_;
  const int64_t lease_ns_;
  ControlState state_;
  // After the last entry that was read; none was: -1.
  int64_t read_offset_ = -1;
  MemberRole role_ = MemberRole::kStandby;
  std::optional<uint64_t> lag_messages_;
  bool yields_ = false;
  // The oldest of them is not older; none: not known.
  std::optional<int64_t> behind_since_ns_;
  uint64_t journal_id_ = 0;
  std::vector<std::string> preferred_;
  std::deque<SkewSample> skews_;
  bool clock_was_right_ = true;

  int64_t heartbeat_due_ns_ = INT64_MIN;
  // Numbers of records: of the last one that was made, that the log has taken, that
  // was requested, and see confirmed() and read_number().
  uint64_t made_ = 0;
  uint64_t sent_ = 0;
  uint64_t wanted_ = 0;
  uint64_t confirmed_ = 0;
  uint64_t read_number_ = 0;
  // When the last record of its own was read; none yet: the log is not read to
  // its end.
  std::optional<int64_t> own_read_ns_;
  int64_t lease_end_ns_ = INT64_MIN;
  int64_t former_lease_end_ns_ = INT64_MIN;
  // Since when the service has been without a lease.
  std::optional<int64_t> late_since_ns_;

  // Since when a takeover of this node would count.
  std::optional<int64_t> vacant_since_ns_;
  int64_t takeover_not_before_ns_ = INT64_MIN;
  int64_t back_off_ns_ = 0;

  std::optional<std::string> successor_;
  int64_t release_due_ns_ = INT64_MIN;
  bool release_read_ = false;

  std::vector<MemberEvent> events_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_MEMBER_LOGIC_H_

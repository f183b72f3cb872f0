// The thread of a ClusterMembership, and what its Members ask.

#ifndef TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_THREAD_H_
#define TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_THREAD_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_cond_var.h"
#include "server/cluster/boot_clock.h"
#include "server/cluster/control_log.h"
#include "server/cluster/member_options.h"
#include "server/cluster/membership_logic.h"
#include "server/cluster/membership_status.h"

namespace timecache::server {

// See ClusterMembership, and, of what has a slot, Member. Thread-safe.
class MembershipThread {
 public:
  using Confirmed = std::function<void(bool owns)>;

  MembershipThread(MemberOptions options, Sharing sharing, int slots,
                   ControlLog* log, const BootClock* clock,
                   std::function<void(int slot, MemberRole)> on_role,
                   std::function<void(int slot, const MemberEvent&)> on_event);
  ~MembershipThread();

  void Start();
  void Stop();
  int slots() const { return static_cast<int>(slots_.size()); }
  void Renew(int slot) ABSL_LOCKS_EXCLUDED(mu_);
  void YieldAll() ABSL_LOCKS_EXCLUDED(mu_);
  std::vector<SlotPlacement> GetPlacement() const ABSL_LOCKS_EXCLUDED(mu_);
  std::string OwnerAddress(int slot) const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t BeginHold(absl::Duration most) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status AwaitHold(uint64_t hold, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status EndCut(uint64_t hold, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndHold(uint64_t hold) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckHold(uint64_t hold) const ABSL_LOCKS_EXCLUDED(mu_);
  bool MayTrim(int slot) const;
  bool MaySettle(int slot) const;
  MembershipStatus GetStatus() const ABSL_LOCKS_EXCLUDED(mu_);

  void SetLag(int slot, uint64_t messages, absl::Duration age)
      ABSL_LOCKS_EXCLUDED(mu_);
  void SetJournal(int slot, uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);
  void Yield(int slot) ABSL_LOCKS_EXCLUDED(mu_);
  MemberRole role(int slot) const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status AwaitFormerLease(int slot) ABSL_LOCKS_EXCLUDED(mu_);
  void BeginService(int slot) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckService(int slot) const;
  bool HoldsLease(int slot) const;
  void Confirm(int slot, Confirmed done) ABSL_LOCKS_EXCLUDED(mu_);
  void EndService(int slot) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Release(int slot, const std::string& to, absl::Duration timeout)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckSuccessor(int slot, const std::string& to) const
      ABSL_LOCKS_EXCLUDED(mu_);
  MemberStatus GetStatus(int slot) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // With mu_, but for what is atomic: that is written with mu_ held.
  struct Slot {
    std::atomic<int64_t> lease_end_ns{INT64_MIN};
    std::atomic<int64_t> serve_until_ns{INT64_MIN};
    bool service_ended = false;
    // Counts Renew.
    uint64_t term = 0;
    // By the number of the record that they wait for.
    std::deque<std::pair<uint64_t, Confirmed>> confirms;
    MemberRole noted_role = MemberRole::kStandby;
  };
  // Of this node: see ClusterMembership::BeginHold.
  struct Hold {
    int64_t until_ns = 0;
    bool cuts = true;
    // Of the first record that says so; and MembershipLogic::lapses when it came back.
    uint64_t number = 0;
    std::optional<uint64_t> lapses;
    // Why it is over, before EndHold.
    absl::Status ended;
  };
  // What the thread calls without the lock.
  struct Calls {
    std::vector<std::pair<Confirmed, bool>> confirmed;
    std::vector<std::pair<int, MemberEvent>> events;
    std::vector<std::pair<int, MemberRole>> roles;
  };

  Slot& At(int slot) { return slots_[static_cast<size_t>(slot)]; }
  const Slot& At(int slot) const { return slots_[static_cast<size_t>(slot)]; }
  bool Holds(const std::atomic<int64_t>& end_ns) const;
  void Publish(int slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PublishAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the number of the first record that says what is held now.
  uint64_t SayHolds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndOldHolds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // After each entry.
  void NoteHolds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Until a record of that number has come back.
  absl::Status AwaitRecord(uint64_t hold, uint64_t number, int64_t late_ns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NotOwner(int slot) const ABSL_LOCKS_EXCLUDED(mu_);
  void Run();
  // False when there is nothing to be read any more.
  bool Read(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  // Of Confirm, those that have an answer.
  static void TakeConfirmed(uint64_t up_to, bool owns, Slot* slot,
                            Calls* calls);
  void NoteRole(int slot) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Notify() ABSL_LOCKS_EXCLUDED(mu_);

  ControlLog* const log_;
  const BootClock* const clock_;
  const std::function<void(int, MemberRole)> on_role_;
  const std::function<void(int, const MemberEvent&)> on_event_;

  mutable absl::Mutex mu_;
  SteadyCondVar changed_;
  MembershipLogic logic_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // What Notify is to call.
  Calls calls_ ABSL_GUARDED_BY(mu_);
  uint64_t last_hold_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Hold> holds_ ABSL_GUARDED_BY(mu_);
  // Of any node, as far as the log is read: written before the leases that reading
  // on has renewed.
  std::atomic<bool> held_{false};
  std::atomic<bool> cut_{false};
  std::vector<Slot> slots_;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CLUSTER_MEMBERSHIP_THREAD_H_

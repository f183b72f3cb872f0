// One consumer group of a map: each event of the map's log is delivered to one
// member at a time, until it is settled.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_CONSUMER_GROUP_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_CONSUMER_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "server/base/lock_order.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/groups/backlog_account.h"
#include "server/engine/groups/group_changes.h"
#include "server/engine/groups/group_ledger.h"
#include "server/engine/groups/group_member.h"
#include "server/engine/groups/group_state.h"
#include "server/engine/groups/member_scheduler.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// The life of an event here:
//
//   backlog --Take--> in flight --ACK, PUT_BACK--> settled
//      ^                  |
//      +--NACK, time-out, member leaves            (NACKs and time-outs at
//         (after NACK's delay, or the pause of      max_attempts, with a
//         one whose members leave each time)        dead-letter namespace:
//                                                   dead-lettering --> settled)
//
// Delivery is at least once: an event leaves by being settled, as a dead
// letter, or counted in `lost`. First attempts are delivered in the log's
// order; events of one key one after the other: a later one waits until the
// earlier is settled.
//
// Thread-safe. Reads no clock and owns no thread: every call passes the time,
// and ConsumerGroups calls Advance. OnAppend is O(1); delivering and settling
// an event cost O(log of the unsettled events). Memory: the batches shared with
// the log, and some 230 B, by estimate, for each unsettled event that has been
// delivered, or passed over. Advance limits it to max_backlog_bytes,
// ConsumerGroups to the map's budget, except for the newest batch, which stays
// however large it is, and for events that members hold: half of that at most,
// or one event. If the process's memory runs out these are dropped, too
// (EventHolder::Kind::kHeld).
class ConsumerGroup final : public ExpiryLog::Follower {
 public:
  // Who makes it, and what it counts in.
  struct Owner {
    // Not owned, must outlive the group.
    const ExpiryLog* log = nullptr;
    BacklogAccount* account = nullptr;
    // The principal.
    std::string created_by = {};
    // Random: a group that is made anew under the same name has another one.
    uint64_t id = 0;
  };

  // `schedule(due_us)` is called when something becomes due: never under the
  // group's lock.
  ConsumerGroup(std::string name, const GroupOptions& options,
                const Owner& owner,
                std::function<void(int64_t due_us)> schedule);
  ~ConsumerGroup() override;

  const std::string& name() const { return name_; }
  const std::string& created_by() const { return created_by_; }
  // Names the group in its deliveries, and in their settlements: its identity,
  // changed by that of a copy of the log, which continues differently.
  uint64_t delivery_id() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return delivery_id_;
  }
  GroupOptions options() const ABSL_LOCKS_EXCLUDED(mu_);
  GroupStatistics GetStatistics() const ABSL_LOCKS_EXCLUDED(mu_);

  // As GroupLedger.
  std::optional<Suspect> TakeSuspect() ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return ledger_.TakeSuspect();
  }

  // Members of one group that are woken a second, on average, because all is
  // delivered; and how many times all of them may be at once.
  static constexpr int64_t kMaxNewsPerSecond = 1'000;
  static constexpr int64_t kMaxNewsAtOnce = 64;

  using Chunk = EventChunk;
  using Member = GroupMember;

  // `wake` is called when there is something for this member to Take: once
  // until it has taken all it may again, from any thread and under the group's
  // lock: it must be quick, must not block and not call the group. The first
  // Take comes without it, and no Take calls its own member's.
  std::unique_ptr<Member> Join(int max_in_flight, std::function<void()> wake,
                               JoinAs as = {}) ABSL_LOCKS_EXCLUDED(mu_);
  // The streams that are members, the oldest first.
  std::vector<MemberInfo> ListMembers() const ABSL_LOCKS_EXCLUDED(mu_);

  // For a map whose changes a log keeps, before each Take: from then on members
  // get a watermark, and losses, once a crash can undo neither. Returns whether
  // there are changes that are not known to be stored; then EndKeeping follows,
  // as soon as all earlier changes are stored, or may not be.
  bool BeginKeeping() ABSL_LOCKS_EXCLUDED(mu_);
  void EndKeeping(bool kept) ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all members: the group is being deleted.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);
  bool closed() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return closed_;
  }

  // --- Of operators.

  // Unsettled events, the oldest first, after a look at no more than
  // kMaxListed. Takes the lock for a bounded time, again and again.
  static constexpr int kMaxListed = 100'000;
  UnsettledPage List(const UnsettledQuery& query) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // What an operator's settlement needs before it; as List. O(events before).
  void OpenTo(const Settlement& settlement, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  // As GroupLedger::Seek, under the log's lock; returns what became of it. `id`
  // is the group's identity from now on: members' deliveries from before are of
  // another one.
  SeekResult Seek(const LogPlace& place, bool drop,
                  const std::vector<ExpiryLog::Followed>& retained, uint64_t id,
                  int64_t now_us,
                  std::vector<std::shared_ptr<const void>>* gone)
      ABSL_LOCKS_EXCLUDED(mu_);

  // --- For ConsumerGroups.

  absl::string_view key_prefix() const override { return key_prefix_; }
  void OnAppendSelected(uint64_t first_event,
                        const SelectedEvents& selected) override
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnAppend(uint64_t first_event,
                const std::shared_ptr<const EventBatch>& batch) override
      ABSL_LOCKS_EXCLUDED(mu_);
  EventHolder::Holding Backlog(EventHolder::Kind kind) const override
      ABSL_LOCKS_EXCLUDED(mu_);
  int64_t KeptTogether() const override { return account_->bytes(); }
  bool DropBacklog(EventHolder::Kind kind, int64_t bytes) override
      ABSL_LOCKS_EXCLUDED(mu_);
  // After Follow: lower numbers are ignored. `inherited` as in GroupLedger.
  // Does not call `schedule`.
  void Start(uint64_t first_event, uint64_t inherited, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  // In place of Start: it is the group that was there before.
  void Restore(const GroupState& state, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  // See LogFork: the identity of the copy, or 0.
  void SetFork(uint64_t fork) ABSL_LOCKS_EXCLUDED(mu_);
  // Reports its changes to `sink` from now on, under its lock. Not owned.
  void SetSink(GroupChangeSink* sink) ABSL_LOCKS_EXCLUDED(mu_);
  // Reports to the sink again that it exists, if `*event` is 0, and of what it
  // keeps from event `*event` on: about that many events and bytes, which
  // become less, and as many as one lock allows. Returns whether there is more,
  // from the new `*event` on.
  bool AppendAgain(uint64_t* event, int* events, int64_t* bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // A member is about to join: the group counts as used at `now_us`. False if
  // it has been closed.
  bool Use(int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether it has had no member for unused_ttl.
  bool UnusedForTooLong(int64_t now_us) const ABSL_LOCKS_EXCLUDED(mu_);
  // Closes it in that case; returns the events lost with it.
  struct Expired {
    // Events unsettled, or lost and not reported to any member.
    uint64_t unsettled = 0;
    // The number of the next event of the log.
    uint64_t next_event = 0;
  };
  std::optional<Expired> CloseIfUnused(int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);
  void SetOptions(const GroupOptions& options) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether there is a place for dead letters.
  void SetDeadLetters(bool possible) ABSL_LOCKS_EXCLUDED(mu_);

  // Settles some, at most to the first PUT_BACK, which must not be the first of
  // all; returns how many.
  size_t Settle(absl::Span<const Settlement> settlements, int64_t now_us,
                absl::Span<SettleResult> results) ABSL_LOCKS_EXCLUDED(mu_);

  // Until EndPutBack the event is not delivered again.
  absl::StatusOr<Delivery> BeginPutBack(const Settlement& settlement,
                                        int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndPutBack(uint64_t event_id, bool done, int64_t now_us)
      ABSL_LOCKS_EXCLUDED(mu_);

  // When Advance next has something to do, with `dead_letters` or without;
  // kNeverUs if never.
  int64_t NextDueUs(bool dead_letters = true) const ABSL_LOCKS_EXCLUDED(mu_);
  // Makes events whose time-out or delay is over ready again, and drops events
  // beyond max_backlog_bytes. Adds to `dead_letters` events that have exhausted their
  // attempts, and takes their room: EndDeadLetter must be called for each.
  // Returns whether there is more to do now; not for dead letters that wait for
  // others.
  bool Advance(int64_t now_us, DeadLetterBudget* room,
               std::vector<Delivery>* dead_letters) ABSL_LOCKS_EXCLUDED(mu_);
  void EndDeadLetter(uint64_t event_id, DeadLetterOutcome outcome,
                     int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class GroupMember;

  // Events that are delivered, settled or returned under one lock: about a
  // millisecond, for which the log may have to wait.
  static constexpr int kMaxUnderLock = 1'024;
  // Fresh events that one Take examines: those that wait for earlier events of
  // their keys are not delivered.
  static constexpr int kMaxOpened = 2 * kMaxUnderLock;
  // The use of a group by fetches alone is recorded so many times in its
  // unused_ttl.
  static constexpr int64_t kRecordedUses = 16;

  // Holds the lock, and reports changes to the sink before it releases the
  // lock.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(ConsumerGroup* group)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(group->mu_) ABSL_NO_THREAD_SAFETY_ANALYSIS
        : group_(group) {
      group_->mu_.Lock();
    }
    ~Lock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      group_->changes_.Flush();
      group_->mu_.Unlock();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    ConsumerGroup* const group_;
  };
  // Wakes members, too, for what has changed, and then schedules what is due.
  class ABSL_SCOPED_LOCKABLE WakingLock {
   public:
    explicit WakingLock(ConsumerGroup* group)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(group->mu_) ABSL_NO_THREAD_SAFETY_ANALYSIS
        : group_(group) {
      group_->mu_.Lock();
    }
    ~WakingLock() ABSL_UNLOCK_FUNCTION() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      const int64_t due_us = group_->WakeOthers();
      group_->changes_.Flush();
      group_->mu_.Unlock();
      if (due_us != kNeverUs) group_->schedule_(due_us);
    }
    WakingLock(const WakingLock&) = delete;
    WakingLock& operator=(const WakingLock&) = delete;

   private:
    ConsumerGroup* const group_;
  };

  struct TakeLimits {
    int events;
    int64_t bytes;
    bool at_least_one;
  };
  Chunk Take(Member* member, int64_t now_us, const TakeLimits& limits)
      ABSL_LOCKS_EXCLUDED(mu_);
  void TakeEvents(Member* member, const TakeLimits& limits, Chunk* chunk)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Leave(Member* member, int64_t now_us, StreamEnd end)
      ABSL_LOCKS_EXCLUDED(mu_);
  void StopTaking(Member* member) ABSL_LOCKS_EXCLUDED(mu_);
  void EndFetch(Member* member, int64_t now_us, StreamEnd end)
      ABSL_LOCKS_EXCLUDED(mu_);
  void PassDelivered(Member* member, int64_t log_us, Chunk* chunk)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AnnounceAllDelivered() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BeginWatermark(int64_t log_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PassWatermark(int64_t log_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether a crash undoes nothing of the group.
  bool IsKept() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return !awaits_log_ || changes_.count() == kept_.changes;
  }
  absl::Status CheckGroup(const Settlement& settlement) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t WakeOthers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool UnusedForTooLongLocked(int64_t now_us) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t DueUs(bool dead_letters = true) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetUnusedSince(int64_t us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RecordUnused() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteUse(int64_t now_us) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AppendLaterOptions() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AppendExists() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AppendCounts() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string name_;
  const std::string created_by_;
  const std::string key_prefix_;
  const ExpiryLog* const log_;
  const BacklogAccount* const account_;
  const std::function<void(int64_t)> schedule_;

  mutable absl::Mutex mu_ ABSL_ACQUIRED_AFTER(lock_order::kGroup)
      ABSL_ACQUIRED_BEFORE(lock_order::kWake);
  // Holds what callers of fetches have. No member: it never takes or leaves.
  Member fetched_ ABSL_GUARDED_BY(mu_){nullptr, 0, nullptr, {.fetches = true}};
  MemberScheduler scheduler_ ABSL_GUARDED_BY(mu_);
  GroupChanges changes_ ABSL_GUARDED_BY(mu_);
  GroupLedger ledger_ ABSL_GUARDED_BY(mu_);
  uint64_t id_ ABSL_GUARDED_BY(mu_);
  uint64_t fork_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t delivery_id_ ABSL_GUARDED_BY(mu_);
  // Of the group as it is.
  int64_t watermark_us_ ABSL_GUARDED_BY(mu_) = 0;
  // What members may be given now, and what once the log has stored it, while
  // that is in progress. Losses are reported all together: no change records
  // that members know of a part of them.
  struct Kept {
    uint64_t changes = 0;
    int64_t watermark_us = 0;
    uint64_t lost = 0;
  };
  Kept kept_ ABSL_GUARDED_BY(mu_);
  Kept keeping_ ABSL_GUARDED_BY(mu_);
  bool is_keeping_ ABSL_GUARDED_BY(mu_) = false;
  bool awaits_log_ ABSL_GUARDED_BY(mu_) = false;
  // As EventChunk's, of the group.
  int64_t delivered_us_ ABSL_GUARDED_BY(mu_) = 0;
  // The members have been woken for all events before this one, or are to be
  // then. `news_us_` is ahead of the clock by what has been used of
  // kMaxNewsPerSecond.
  uint64_t announced_event_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t news_us_ ABSL_GUARDED_BY(mu_) = INT64_MIN;
  int64_t news_due_us_ ABSL_GUARDED_BY(mu_) = kNeverUs;
  // Since when there is no member. kNeverUs: there is one, or the last one has
  // left since the last Advance, which says what time it is.
  int64_t unused_since_us_ ABSL_GUARDED_BY(mu_) = kNeverUs;
  int64_t recorded_unused_us_ ABSL_GUARDED_BY(mu_) = kNeverUs;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_CONSUMER_GROUP_H_

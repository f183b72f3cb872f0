// The events that a consumer group received, and their outcomes.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_LEDGER_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_LEDGER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/groups/backlog_account.h"
#include "server/engine/groups/group_change.h"
#include "server/engine/groups/group_changes.h"
#include "server/engine/groups/group_events.h"
#include "server/engine/groups/group_state.h"
#include "server/engine/groups/member_scheduler.h"
#include "server/engine/groups/retained_batches.h"
#include "server/engine/store/group_types.h"

namespace timecache::server {

// The life of every event of one group, and the counts of it.
//
// Not thread-safe: it works under the group's lock. Append is O(1), all else
// O(log of what is unsettled) an event.
class GroupLedger {
 public:
  using Event = UnsettledEvent;

  // Events that wait behind others of their keys: with more, no fresh event is
  // delivered.
  static constexpr size_t kMaxBlockedByKey = 65'536;
  // Most suspects that are tried at a time.
  static constexpr uint64_t kMaxTrials = 65'536;
  // Timers that one PassTime fires.
  static constexpr int kMaxTimers = 1'024;
  // Returns that make an event a suspect, and how long one waits: twice as long
  // after each further one.
  static constexpr int kSuspectReturns = 3;
  static constexpr int64_t kMinSuspectPauseUs = kMicrosPerSecond;
  static constexpr int64_t kMaxSuspectPauseUs = 300 * kMicrosPerSecond;
  // Events that are opened, all in all, for ACKs of attempts from before the
  // group was rebuilt: as many as a member may hold.
  static constexpr int kMaxOpenedForAcks = 65'536;

  // `turns` decides which members get failed events, and records what members
  // do. `account` counts memory; changes are reported to `changes`. None is
  // owned.
  GroupLedger(const GroupOptions& options, MemberScheduler* turns,
              BacklogAccount* account, GroupChanges* changes)
      : options_(options),
        scheduler_(turns),
        account_(account),
        changes_(changes),
        batches_(account),
        events_(account) {}
  ~GroupLedger() { Clear(); }

  const GroupOptions& options() const { return options_; }
  void SetOptions(const GroupOptions& options) { options_ = options; }
  void SetDeadLetters(bool possible) { dead_letters_ = possible; }
  // But for `members`.
  GroupStatistics GetStatistics() const;

  // A batch of the log. Numbers that are missing before it are lost; those
  // below Start's are ignored. Batches that arrive before Start are processed
  // there.
  void Append(uint64_t first_event, const SelectedEvents& batch);
  // `inherited` events before the first one are lost: those that a group of the
  // same name had not settled when it expired, and those since. TakeEarly
  // follows.
  void Start(uint64_t first_event, uint64_t inherited = 0);
  void TakeEarly();
  void Clear();

  // Moves to a place of the log, of which `retained` is what it has from
  // `place.first` on: these events are unsettled, with no attempt yet. So are
  // those from `place.asked` on that the log has no more and the group still
  // has; the others are lost. Events before `place.asked` stay, or are dropped.
  // No member holds any event then. Returns how many were dropped. `*gone` gets
  // memory to free without a lock.
  // O(batches), a look at each event up to the last that a member holds, and
  // O(log events) for each that it held. Where opened events stay, as much for
  // each that is dropped, or begins anew, too: 1.5 us.
  uint64_t Seek(const LogPlace& place, bool drop,
                const std::vector<ExpiryLog::Followed>& retained,
                std::vector<std::shared_ptr<const void>>* gone);

  // --- Rebuilding.

  // Instead of Start, at `now_us`. Reports nothing.
  void Restore(const GroupState& state, int64_t now_us);
  // Sets what GroupChange::kExists says of the ledger.
  void Describe(GroupChange* change) const;
  // Reports unsettled events from number `from` on: `*events` of them, and
  // about `*bytes`, which become less. Returns the number to go on with; none
  // if there are no more.
  std::optional<uint64_t> AppendKept(uint64_t from, int* events,
                                     int64_t* bytes);

  // --- Time.

  // The latest time that was passed.
  int64_t now_us() const { return now_us_; }
  void AdvanceTo(int64_t now_us) { now_us_ = std::max(now_us_, now_us); }
  // Fires the timers that are due at `now_us`, except those of dead letters.
  // Returns whether there are more.
  bool PassTime(int64_t now_us);
  int64_t DueUs(bool dead_letters) const;
  // Drops what is beyond max_backlog_bytes.
  void Trim() { TrimTo(account_->ShareOf(options_.max_backlog_bytes)); }
  // Memory of all unsettled events.
  int64_t bytes() const { return batches_.bytes() + events_.memory_bytes(); }
  // What Drop may free, at most, and when the oldest of it was published.
  int64_t DroppableBytes(EventHolder::Kind kind) const {
    return kind == EventHolder::Kind::kHeld ? bytes()
                                            : batches_.DroppableBytes();
  }
  int64_t OldestPublishedUs() const { return batches_.OldestPublishedUs(); }
  // Drops the oldest events until `bytes` less are kept: with kBacklog those
  // that no member holds, with kHeld any. Returns whether less is kept.
  bool Drop(EventHolder::Kind kind, int64_t bytes);
  // The events to report as lost if all unsettled ones are dropped, and the
  // number of the next event of the log.
  uint64_t Unsettled() const;
  uint64_t next_event() const { return next_event_.value_or(0); }

  // --- Delivery.

  // Whether the group is not paused, and members hold less than they may, in
  // bytes: then one more event may be delivered, however large it is. While they
  // hold nothing they have room.
  bool MayDeliver() const;
  // Events that could be delivered now; some may turn out to wait for others of
  // their keys. Of these, those that could be delivered to `member`.
  MemberScheduler::Supply Available() const;
  uint64_t AvailableTo(const GroupMember* member) const;
  // Whether events that failed so could be.
  bool MayGet(const GroupMember* member, const Failures& failures) const;
  // The next event to deliver to `member`, which stays the next; null if there
  // is none, or `*may_open` fresh events have been examined.
  Event* NextFor(const GroupMember* member, int* may_open);
  Delivery Give(Event* event, GroupMember* member);
  // The first event that no member has had; if there is none, the next event of
  // the log, with kNeverUs. Maybe an earlier one: as GroupEvents.
  struct Awaiting {
    uint64_t event = 0;
    int64_t death_us = kNeverUs;
  };
  Awaiting FirstAwaitingDelivery();
  // Whether there are events that have not been examined. O(1).
  bool HasFresh() const { return batches_.fresh() > 0; }
  // What `member` holds, `most` of it at once. Returns whether there is more.
  // `suspected`: which of it may be what ended its stream.
  enum class Suspected { kNone, kSuspects, kAll };
  bool GiveBack(GroupMember* member, Suspected suspected, int most);
  // A delivery, if `holder` still has it.
  void GiveBack(const GroupMember& holder, const GroupMember::Fetched& fetched);
  // The event that was returned as a suspect most often since the last call;
  // none if none was.
  std::optional<Suspect> TakeSuspect() {
    return std::exchange(last_suspect_, std::nullopt);
  }
  // When the oldest unsettled event died; kNeverUs if there is none.
  int64_t OldestUs() const;
  // Events that were lost since the last call of TakeLost.
  uint64_t TakeLost();
  uint64_t unreported_lost() const { return unreported_lost_; }
  // The report of so many has not arrived.
  void ReportAgain(uint64_t lost) { unreported_lost_ += lost; }

  // Adds to the page unsettled events from number `from` on, after a look at no
  // more than `*steps`, which becomes less. Returns the number to go on with;
  // none if there are no more.
  std::optional<uint64_t> List(uint64_t from, const UnsettledQuery& query,
                               int* steps, UnsettledPage* page) const;

  // --- Settling.

  // Examines fresh events up to this one, at most `most` of them: an operator's
  // settlement needs that. Returns whether there are more to examine.
  bool OpenTo(uint64_t event_id, int most);
  // But a PUT_BACK.
  absl::Status Settle(const Settlement& settlement);
  // Suspends the timers of an event, until it is settled or released.
  absl::StatusOr<Event*> Claim(const Settlement& settlement);
  void EndPutBack(uint64_t event_id, bool done);
  // Claims the next event that is to become a dead letter now; null if there is
  // none.
  Event* ClaimDeadLettering();
  static Delivery ToDeadLetter(const Event& event);
  bool HasDeadLettering() const;
  // A letter that never fits is lost.
  void EndDeadLetter(uint64_t event_id, DeadLetterOutcome outcome);

 private:
  using State = UnsettledEvent::State;

  absl::Status SettleByOperator(const Settlement& settlement);
  absl::StatusOr<Event*> FindForOperator(const Settlement& settlement) const;
  void NackByOperator(const Settlement& settlement, Event* event);
  void TerminateByOperator(const Settlement& settlement, Event* event);
  void AppendPast(const Event& event, int64_t ready_us);
  static UnsettledInfo Describe(const Event& event);
  void EndDeliveries(GroupStatistics* ended);
  void RemoveOpened(std::vector<std::shared_ptr<const void>>* gone);
  void Forget(Event* event);
  absl::Status Ack(const Settlement& settlement);
  absl::Status Nack(const Settlement& settlement);
  absl::Status Extend(const Settlement& settlement);
  absl::Status Terminate(const Settlement& settlement);
  static bool IsCurrent(const Settlement& settlement, const Event& event);
  static bool IsFromBefore(const Settlement& settlement, const Event& event);
  static absl::Status StaleAttempt(const Settlement& settlement);
  Event* OpenForAck(uint64_t event_id);
  absl::StatusOr<Event*> FindUnsettled(const Settlement& settlement) const;
  absl::StatusOr<Event*> FindInFlight(const Settlement& settlement);
  Event* FindClaimed(uint64_t event_id) const;
  bool HasExhaustedAttempts(const Event& event) const {
    return dead_letters_ && (event.attempts >= options_.max_attempts ||
                             event.reason == FailureReason::kTerminated);
  }
  uint64_t Unopened() const;
  Event* OpenNext();
  void CountDelivery(bool again);
  uint64_t TrialRoom() const {
    return trial_window_ - std::min(trials_, trial_window_);
  }
  void Return(Event* event, bool suspect);
  void EndHolding(Event* event, int64_t ready_us);
  void Fail(Event* event, FailureReason reason, int64_t ready_us);
  void SetReason(Event* event, absl::string_view text);
  void NoteFailed(Event* event, MemberId member, int attempt);
  int64_t RetryUs(const Event& event) const;
  int64_t RaiseSuspicion(Event* event);
  void SetSuspect(Event* event, bool suspect);
  void EndTrial(Event* event, uint64_t window);
  void EndDelivery(GroupChange::Kind kind, const Event& event,
                   int64_t ready_us);
  void Settle(GroupChange::Kind kind, Event* event);
  void Restore(const KeptBatch& kept, const GroupState& state, uint64_t opened);
  void Reopen(const RetainedBatches::Opened& opened, uint64_t number,
              const GroupState& state);
  int64_t AppendKept(uint64_t number, const EventBatch& batch, int index,
                     const Event* event);
  void CreditSettlement(const Event& event, const Settlement& settlement);
  void Release(Event* event);
  void AddInFlight(int64_t bytes);
  void MakeReady(Event* event);
  void MakeReadyAt(Event* event, int64_t ready_us);
  void Remove(Event* event);
  void Lose(uint64_t events);
  void TrimTo(int64_t limit_bytes);
  void Shrink(RetainedBatch* retained);
  void DropBatch(RetainedBatch* retained, bool also_held);

  GroupOptions options_;
  MemberScheduler* const scheduler_;
  BacklogAccount* const account_;
  GroupChanges* const changes_;
  bool dead_letters_ = false;
  int64_t now_us_ = INT64_MIN;
  // The next event of the log; unknown before Start.
  std::optional<uint64_t> next_event_;
  // The first one.
  uint64_t start_event_ = 0;
  // Batches that arrived before Start.
  std::vector<std::pair<uint64_t, SelectedEvents>> early_;
  RetainedBatches batches_;
  GroupEvents events_;
  uint64_t unreported_lost_ = 0;
  int opened_for_acks_ = 0;
  // Suspects are tried few at a time: one, and one more for each that is not the
  // end of its member.
  uint64_t trial_window_ = 1;
  uint64_t trials_ = 0;
  std::optional<Suspect> last_suspect_;
  uint64_t suspected_ = 0;
  // Deliveries in flight of events that had been delivered before.
  uint64_t redelivered_in_flight_ = 0;
  // The counts that are not derived from other state.
  GroupStatistics counts_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_LEDGER_H_

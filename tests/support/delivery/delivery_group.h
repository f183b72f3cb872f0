// What a consumer group must do: the rules of ConsumerGroup in the fewest
// words, with every event by itself.

#ifndef TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_GROUP_H_
#define TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_GROUP_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/engine/groups/consumer_group.h"
#include "server/engine/store/group_types.h"
#include "tests/support/delivery/delivery_reference.h"

namespace timecache::server {

// Knows the state of each event that is not settled, and so which one comes
// next: the oldest of those that may be given out. How many a member is given
// at once is the engine's to choose.
//
// Not thread-safe.
class DeliveryGroup {
 public:
  // Gets events from number `first` on, of the keys that the options name. `dead_letters`: the map has somewhere
  // to put them. Neither reference is owned.
  DeliveryGroup(const GroupOptions& options, bool dead_letters, uint64_t first,
                DeliveryReference* events, const RetainedReference* log);

  // As ConsumerGroup::delivery_id; 0 if it is not set.
  void SetGroupId(uint64_t id) { group_id_ = id; }
  uint64_t group_id() const { return group_id_; }

  // The log appended all that `log` knows of.
  void Append();
  // What has timed out or was delayed up to now may be given out.
  void Advance(int64_t now_us);
  // What is no longer given out in vain, by its options, is given out again.
  void Reprieve(int64_t now_us);
  void Update(const GroupOptions& options);

  void Join(int member, int max_in_flight);
  void Leave(int member, int64_t now_us);
  // `woken`: members that were woken and have not come since. They may be stuck
  // for the group, or not.
  void CheckTake(int member, int max_events, const EventChunk& chunk,
                 const std::set<int>& woken, int64_t now_us);

  // What Settle must answer; OK for a PUT_BACK whose put is due.
  absl::Status Expected(const Settlement& settlement) const;
  // The member that was given it has answered, if Expected says OK: before its
  // put.
  void Answer(const Settlement& settlement);
  // Of one that is refused as stale.
  void AnswerLate(const Settlement& settlement);
  // It was settled as Expected said: what it was, or what its put did.
  void Settle(const Settlement& settlement, int64_t now_us);

  // The group tries to put this event as a dead letter; whether it could.
  void CheckDeadLetter(uint64_t number, int attempt, bool put, int64_t now_us);

  // The group says how many it has lost since it began: those are its oldest
  // that no member holds, and its memory was too small for all. Or the
  // process's, if `squeezed`: then also what members hold, where all else was
  // not enough.
  void CheckLost(const GroupStatistics& statistics, bool squeezed = false);
  // After the group has trimmed: it keeps to its limit, but for what members
  // hold and for its newest batch.
  void CheckMemory(const GroupStatistics& statistics) const;
  // After Advance on both sides.
  void CheckStatistics(const GroupStatistics& statistics) const;

  size_t unsettled() const { return unsettled_.size(); }
  std::vector<Settlement> Held(int member) const;
  // Some member of `woken` may take what a member that is not could.
  void CheckWoken(const std::set<int>& woken) const;
  // When something is timed out, no longer delayed, or a dead letter.
  int64_t NextDueUs() const;
  // delivered, redelivered, acked, nacked, put_back, timed_out, dead letters
  // and lost.
  const GroupStatistics& counted() const { return counted_; }

 private:
  enum class Phase { kFresh, kHeld, kDelayed, kReady, kDeadLettering };

  struct State {
    Phase phase = Phase::kFresh;
    // That counted.
    int attempts = 0;
    // Streams that ended, and whether one has since the last of these.
    int returns = 0;
    bool returned = false;
    int member = 0;
    // Who NACKed it last, unless it timed out since.
    int rejected_by = 0;
    // Who let it time out and has not answered, and at which attempt.
    std::vector<std::pair<int, int>> late;
    // What it counts for while a member has it.
    int64_t held_bytes = 0;
    // kHeld: times out; kDelayed: is ready; kDeadLettering: is tried next.
    int64_t due_us = kNeverUs;
    // kReady, but new options made it one that was given out in vain: which it
    // is for the group, it may find out late.
    bool doubtful = false;

    int attempt() const {
      return attempts + (phase == Phase::kHeld || returned ? 1 : 0);
    }
    bool failed() const { return rejected_by != 0 || !late.empty(); }
    bool FailedLike(const State& other) const {
      return rejected_by == other.rejected_by && late == other.late;
    }
    bool IsLate(int of) const;
  };

  struct Member {
    int max_in_flight = 0;
    // Most that it may hold now.
    int window = 0;
    int held = 0;
    // Has settled since an event that it held timed out.
    bool responsive = true;
  };

  // Whether a member may be given an event: it depends, where it is known to
  // the group alone who is stuck.
  enum class May { kNo, kDepends, kYes };

  using Unsettled = std::map<uint64_t, State>;

  bool InVain(const State& state) const {
    return dead_letters_ && state.attempts >= options_.max_attempts;
  }
  bool HasRoom(int member) const;
  // What the group may count for the events themselves, beside their batches.
  int64_t EventBytes() const {
    return static_cast<int64_t>(unsettled_.size()) * GroupEvents::kEventBytes;
  }
  May MayTake(int member, const State& state, const std::set<int>& woken) const;
  // The next event that `member` must be given; 0 if there is none.
  uint64_t NextFor(int member, const std::set<int>& woken) const;
  void Fail(State* state, bool in_time);
  void EndNack(uint64_t number, int64_t delay_us, int64_t now_us);
  void Enter(uint64_t number, State* state, Phase phase, int64_t due_us);
  void Return(uint64_t number, State* state, int64_t now_us);
  void Remove(uint64_t number);
  void LoseOldest(uint64_t lost);
  void LoseHeld(uint64_t lost, uint64_t held_lost);
  void Refresh(uint64_t number);
  void CheckGiven(int member, const Delivery& delivery,
                  const std::set<int>& woken, int64_t now_us);
  void CheckOrder(int member, uint64_t number,
                  const std::set<int>& woken) const;
  void CheckWatermark(int64_t watermark_us);

  GroupOptions options_;
  const bool dead_letters_;
  const uint64_t first_;
  DeliveryReference* const events_;
  const RetainedReference* const log_;

  uint64_t end_;
  // Of the events before it, those that are the group's.
  uint64_t received_ = 0;
  uint64_t group_id_ = 0;
  Unsettled unsettled_;
  // The unsettled events of each key: the first of them may be given out.
  std::unordered_map<std::string, std::set<uint64_t>> by_key_;
  std::set<uint64_t> available_;
  // By due_us: of kHeld and kDelayed, and of kDeadLettering.
  std::set<std::pair<int64_t, uint64_t>> timers_;
  std::set<std::pair<int64_t, uint64_t>> doomed_;
  std::map<int, Member> members_;
  int64_t watermark_us_ = INT64_MIN;
  uint64_t lost_told_ = 0;
  // Batches of dead letters since CheckLost: it had them still when it lost.
  std::set<size_t> dead_batches_;
  int64_t dead_letters_since_ = 0;
  // Of all that members hold.
  int64_t held_bytes_ = 0;
  // What does not follow from the states.
  GroupStatistics counted_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_TESTS_SUPPORT_DELIVERY_DELIVERY_GROUP_H_

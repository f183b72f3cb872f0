// The unsettled events of a consumer group that have been delivered, or passed
// over.

#ifndef TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_EVENTS_H_
#define TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_EVENTS_H_

#include <climits>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "server/base/clock.h"
#include "server/base/memory_budget.h"
#include "server/engine/groups/backlog_account.h"
#include "server/engine/groups/group_ready.h"
#include "server/engine/groups/retained_batches.h"
#include "server/engine/store/group_types.h"
#include "server/engine/store/in_flight_limit.h"

namespace timecache::server {

class GroupMember;

// Who failed an event.
struct FailedAttempts {
  Failures failures;
  // The attempts that timed out, of failures.late.
  std::vector<int> late_attempts;
  // See Delivery.
  std::shared_ptr<const std::string> reason_text;
};

// One of them.
struct UnsettledEvent {
  enum class State : uint8_t {
    kBlockedByKey,   // an earlier event of its key is unsettled
    kReady,          // to be delivered
    kInFlight,       // a member has it until due_us
    kDelayed,        // to be delivered again at due_us
    kDeadLettering,  // becomes a dead letter at due_us
    kClaimed,        // being put somewhere; no clock runs
  };

  uint64_t id = 0;
  RetainedBatch* retained = nullptr;
  int index = 0;
  // Attempts that counted: that ended by NACK or were not settled in time.
  int attempts = 0;
  // Deliveries that ended with the member's stream, and whether there is one
  // since the last attempt that counted.
  int returns = 0;
  bool returned = false;
  // How often it may have been what ended the stream, since the last attempt
  // that counted.
  int suspicion = 0;
  // One of the suspects that are tried at a time.
  bool on_trial = false;
  FailureReason reason = FailureReason::kUnknown;
  State state = State::kBlockedByKey;
  // See DueEvents.
  bool due_in_order = false;
  int64_t due_us = kNeverUs;
  // Since when a member has it.
  int64_t since_us = 0;
  // The bytes that its group's in-flight bytes count for it, while a member has
  // it.
  int64_t held_bytes = 0;
  // Null as long as it has not failed. Changes only while the event is not
  // ready.
  std::unique_ptr<FailedAttempts> failed;

  // Its neighbours among the unsettled events of its key, in order.
  size_t key_hash = 0;
  UnsettledEvent* key_before = nullptr;
  UnsettledEvent* key_after = nullptr;

  // Its neighbours in DueEvents.
  UnsettledEvent* due_before = nullptr;
  UnsettledEvent* due_after = nullptr;

  // The member that has it, and its neighbours there: see HeldEvents.
  GroupMember* holder = nullptr;
  UnsettledEvent* held_before = nullptr;
  UnsettledEvent* held_after = nullptr;

  // Of its latest delivery: 1 for the first.
  int attempt() const {
    return attempts + (holder != nullptr || returned ? 1 : 0);
  }
  bool was_delivered() const { return attempts > 0 || returns > 0; }
  // No member has had it, and it is not being put elsewhere.
  bool awaits_delivery() const {
    return holder == nullptr && !was_delivered() && state != State::kClaimed &&
           state != State::kDeadLettering;
  }
  const Failures& failures() const;
  FailedAttempts* MutableFailed();
  bool is_suspect() const { return failures().suspect; }
  Delivery ToDelivery() const {
    Delivery delivery = {retained->batch, index, id, attempt(), returns};
    if (failed != nullptr) delivery.reason_text = failed->reason_text;
    return delivery;
  }
};

// The events that one member holds, in order of delivery. O(1).
class HeldEvents {
 public:
  // Null: they count in none.
  explicit HeldEvents(std::shared_ptr<InFlightLimit> limit = nullptr)
      : limit_(std::move(limit)) {}

  void Add(UnsettledEvent* event);
  void Remove(UnsettledEvent* event);
  UnsettledEvent* front() const { return front_; }
  int size() const { return size_; }
  // How many more the limit lets it hold.
  int room() const { return limit_ == nullptr ? INT_MAX : limit_->room(); }

 private:
  const std::shared_ptr<InFlightLimit> limit_;
  UnsettledEvent* front_ = nullptr;
  UnsettledEvent* back_ = nullptr;
  int size_ = 0;
};

// Events by due_us, and then by number. Deliveries come in that order, and have
// a list: O(1). For others it is O(log of the others).
class DueEvents {
 public:
  // The event's due_us must not change in between.
  void Add(UnsettledEvent* event);
  void Remove(UnsettledEvent* event);
  void Clear();
  // Null if there is none.
  UnsettledEvent* First() const;

 private:
  using Key = std::tuple<int64_t, uint64_t, UnsettledEvent*>;
  static Key KeyOf(UnsettledEvent* event) {
    return {event->due_us, event->id, event};
  }

  UnsettledEvent* front_ = nullptr;
  UnsettledEvent* back_ = nullptr;
  absl::btree_set<Key> others_;
};

// Keeps each event in the one order that its state needs, and the events of one
// key in a queue. (Of keys with the same 64-bit hash: a collision only makes an
// event wait unnecessarily.)
//
// Not thread-safe. Every call is O(log of what is unsettled).
class GroupEvents {
 public:
  using State = UnsettledEvent::State;

  // Memory of an event here, including its places in the orders, by estimate.
  static constexpr int64_t kEventBytes = 232;

  // `account` counts what is kept; not owned.
  explicit GroupEvents(BacklogAccount* account) : share_(account) {}

  // Event numbers only grow. The event is ready, or blocked by an earlier one
  // of its key.
  UnsettledEvent* Open(uint64_t id, RetainedBatch* retained, int index,
                       absl::string_view key);
  // Removes the event; the next one of its key becomes ready.
  void Remove(UnsettledEvent* event);
  void Clear();
  // The same in O(1): the memory is that of what it returns. No member may hold
  // an event.
  std::shared_ptr<const void> TakeAll();

  // Null if there is none.
  UnsettledEvent* Find(uint64_t id) const;
  // Whether one of this key is here.
  bool HasKey(absl::string_view key) const;
  // The lowest number, of all or from `id` on.
  UnsettledEvent* First() const { return FirstFrom(0); }
  UnsettledEvent* FirstFrom(uint64_t id) const;
  // In order, until `visit` returns false; it must change nothing.
  void Visit(absl::FunctionRef<bool(UnsettledEvent* event)> visit) const {
    for (const auto& [id, event] : events_) {
      if (!visit(event.get())) return;
    }
  }
  // Those with numbers below this one. O(these).
  uint64_t CountBefore(uint64_t id) const {
    return static_cast<uint64_t>(
        std::distance(events_.begin(), events_.lower_bound(id)));
  }
  // The first that awaits its first delivery; maybe an earlier one, while there
  // is a long row of others before it. Null: none does. O(log events), and O(1)
  // for each of the others once.
  UnsettledEvent* FirstAwaitingDelivery();
  // Some from before what it has passed over await their delivery again.
  void AwaitFromFirst() { awaiting_from_ = 0; }
  // The earliest due_us, of kInFlight and kDelayed, or of kDeadLettering; the
  // lowest number.
  UnsettledEvent* FirstDue() const { return timers_.First(); }
  UnsettledEvent* FirstDeadLettering() const { return dead_lettering_.First(); }

  size_t size() const { return events_.size(); }
  int64_t memory_bytes() const { return share_.bytes(); }
  const ReadyEvents& ready() const { return ready_; }
  size_t blocked_by_key() const { return blocked_by_key_; }

  // What its last attempt ended with; null: nothing. Its memory counts.
  void SetReason(UnsettledEvent* event,
                 std::shared_ptr<const std::string> text);
  // Blocked, if an earlier one of its key is unsettled.
  void SetReady(UnsettledEvent* event) {
    Move(event,
         event->key_before == nullptr ? State::kReady : State::kBlockedByKey,
         kNeverUs);
  }
  // `state` is one with a due_us.
  void SetDue(UnsettledEvent* event, State state, int64_t due_us) {
    Move(event, state, due_us);
  }
  // The member of this attempt, which timed out, is done with the event. Returns
  // it; 0 if there is none.
  MemberId ForgetLate(UnsettledEvent* event, int attempt);
  // Keeps due_us.
  void SetClaimed(UnsettledEvent* event) {
    Move(event, State::kClaimed, event->due_us);
  }

 private:
  void Move(UnsettledEvent* event, State state, int64_t due_us);
  void Enter(UnsettledEvent* event);
  void Exit(UnsettledEvent* event);
  void Charge();

  absl::btree_map<uint64_t, std::unique_ptr<UnsettledEvent>> events_;
  ReadyEvents ready_;
  DueEvents timers_;
  DueEvents dead_lettering_;
  size_t blocked_by_key_ = 0;
  // All before it have been delivered.
  uint64_t awaiting_from_ = 0;
  int64_t reason_bytes_ = 0;
  // The last event of each key, by its hash.
  absl::flat_hash_map<size_t, UnsettledEvent*> last_of_key_;
  EventMemoryCharge charge_;
  BacklogCharge share_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_GROUPS_GROUP_EVENTS_H_

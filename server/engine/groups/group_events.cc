#include "server/engine/groups/group_events.h"

#include <memory>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"
#include "server/base/check.h"

namespace timecache::server {

namespace {

// So many are counted at once.
constexpr int64_t kChargedEvents = 256;
// Most that FirstAwaitingDelivery passes over at once.
constexpr int kMaxPassed = 16'384;

}  // namespace

void HeldEvents::Add(UnsettledEvent* event) {
  event->held_before = back_;
  event->held_after = nullptr;
  (back_ != nullptr ? back_->held_after : front_) = event;
  back_ = event;
  ++size_;
  if (limit_ != nullptr) limit_->Add();
}

void HeldEvents::Remove(UnsettledEvent* event) {
  UnsettledEvent* const before = std::exchange(event->held_before, nullptr);
  UnsettledEvent* const after = std::exchange(event->held_after, nullptr);
  (before != nullptr ? before->held_after : front_) = after;
  (after != nullptr ? after->held_before : back_) = before;
  --size_;
  if (limit_ != nullptr) limit_->Remove();
}

void DueEvents::Add(UnsettledEvent* event) {
  event->due_in_order = back_ == nullptr || KeyOf(back_) < KeyOf(event);
  if (!event->due_in_order) {
    others_.insert(KeyOf(event));
    return;
  }
  event->due_before = back_;
  event->due_after = nullptr;
  (back_ != nullptr ? back_->due_after : front_) = event;
  back_ = event;
}

void DueEvents::Remove(UnsettledEvent* event) {
  if (!event->due_in_order) {
    others_.erase(KeyOf(event));
    return;
  }
  UnsettledEvent* const before = event->due_before;
  UnsettledEvent* const after = event->due_after;
  (before != nullptr ? before->due_after : front_) = after;
  (after != nullptr ? after->due_before : back_) = before;
}

void DueEvents::Clear() {
  front_ = back_ = nullptr;
  others_.clear();
}

UnsettledEvent* DueEvents::First() const {
  if (others_.empty()) return front_;
  UnsettledEvent* const other = std::get<2>(*others_.begin());
  return front_ != nullptr && KeyOf(front_) < KeyOf(other) ? front_ : other;
}

UnsettledEvent* GroupEvents::Open(uint64_t id, RetainedBatch* retained,
                                  int index, absl::string_view key) {
  TIMECACHED_CHECK(events_.empty() || events_.rbegin()->first < id);
  auto owned = std::make_unique<UnsettledEvent>();
  UnsettledEvent* const event = owned.get();
  event->id = id;
  event->retained = retained;
  event->index = index;
  event->key_hash = absl::Hash<absl::string_view>()(key);
  events_.emplace_hint(events_.end(), id, std::move(owned));
  UnsettledEvent*& last = last_of_key_[event->key_hash];
  event->key_before = std::exchange(last, event);
  if (event->key_before != nullptr) event->key_before->key_after = event;
  event->state =
      event->key_before != nullptr ? State::kBlockedByKey : State::kReady;
  Enter(event);
  Charge();
  return event;
}

void GroupEvents::SetReason(UnsettledEvent* event,
                            std::shared_ptr<const std::string> text) {
  if (event->failed == nullptr && text == nullptr) return;
  auto& reason = event->MutableFailed()->reason_text;
  const auto bytes = [](const std::shared_ptr<const std::string>& of) {
    return of == nullptr ? 0 : static_cast<int64_t>(of->size());
  };
  const int64_t more = bytes(text) - bytes(reason);
  reason = std::move(text);
  if (more == 0) return;
  reason_bytes_ += more;
  Charge();
}

void GroupEvents::Remove(UnsettledEvent* event) {
  SetReason(event, nullptr);
  Exit(event);
  UnsettledEvent* const before = event->key_before;
  UnsettledEvent* const after = event->key_after;
  if (before != nullptr) before->key_after = after;
  if (after != nullptr) {
    after->key_before = before;
    if (before == nullptr && after->state == State::kBlockedByKey) {
      SetReady(after);
    }
  } else if (before != nullptr) {
    last_of_key_[event->key_hash] = before;
  } else {
    last_of_key_.erase(event->key_hash);
  }
  // The first one is found without a search.
  const auto first = events_.begin();
  events_.erase(first->first == event->id ? first : events_.find(event->id));
  Charge();
}

void GroupEvents::Charge() {
  const int64_t pieces =
      (static_cast<int64_t>(events_.size()) + kChargedEvents - 1) /
      kChargedEvents;
  charge_.Set(pieces * kChargedEvents * kEventBytes + reason_bytes_);
  share_.Set(static_cast<int64_t>(events_.size()) * kEventBytes +
             reason_bytes_);
}

void GroupEvents::Clear() {
  ready_ = ReadyEvents();
  timers_.Clear();
  dead_lettering_.Clear();
  blocked_by_key_ = 0;
  awaiting_from_ = 0;
  last_of_key_.clear();
  events_.clear();
  reason_bytes_ = 0;
  Charge();
}

std::shared_ptr<const void> GroupEvents::TakeAll() {
  const auto all =
      std::make_shared<std::tuple<decltype(events_), ReadyEvents, DueEvents,
                                  DueEvents, decltype(last_of_key_)>>(
          std::move(events_), std::move(ready_), std::move(timers_),
          std::move(dead_lettering_), std::move(last_of_key_));
  Clear();
  return all;
}

UnsettledEvent* GroupEvents::Find(uint64_t id) const {
  const auto it = events_.find(id);
  return it == events_.end() ? nullptr : it->second.get();
}

bool GroupEvents::HasKey(absl::string_view key) const {
  return last_of_key_.contains(absl::Hash<absl::string_view>()(key));
}

UnsettledEvent* GroupEvents::FirstFrom(uint64_t id) const {
  const auto it = events_.lower_bound(id);
  return it == events_.end() ? nullptr : it->second.get();
}

UnsettledEvent* GroupEvents::FirstAwaitingDelivery() {
  auto it = events_.lower_bound(awaiting_from_);
  for (int i = 0; it != events_.end(); ++it, ++i) {
    if (it->second->awaits_delivery() || i == kMaxPassed) {
      awaiting_from_ = it->first;
      return it->second.get();
    }
  }
  if (!events_.empty()) awaiting_from_ = events_.rbegin()->first + 1;
  return nullptr;
}

void GroupEvents::Move(UnsettledEvent* event, State state, int64_t due_us) {
  Exit(event);
  event->state = state;
  event->due_us = due_us;
  Enter(event);
}

const Failures& UnsettledEvent::failures() const {
  static const Failures none;
  return failed == nullptr ? none : failed->failures;
}

FailedAttempts* UnsettledEvent::MutableFailed() {
  if (failed == nullptr) failed = std::make_unique<FailedAttempts>();
  return failed.get();
}

MemberId GroupEvents::ForgetLate(UnsettledEvent* event, int attempt) {
  if (event->failed == nullptr) return 0;
  std::vector<int>& attempts = event->failed->late_attempts;
  const auto it = std::find(attempts.begin(), attempts.end(), attempt);
  if (it == attempts.end()) return 0;
  Exit(event);
  std::vector<MemberId>& late = event->failed->failures.late;
  const auto member = late.begin() + (it - attempts.begin());
  const MemberId forgotten = *member;
  late.erase(member);
  attempts.erase(it);
  Enter(event);
  return forgotten;
}

void GroupEvents::Enter(UnsettledEvent* event) {
  switch (event->state) {
    case State::kBlockedByKey:
      ++blocked_by_key_;
      return;
    case State::kReady:
      ready_.Add(event);
      return;
    case State::kInFlight:
    case State::kDelayed:
      timers_.Add(event);
      return;
    case State::kDeadLettering:
      dead_lettering_.Add(event);
      return;
    case State::kClaimed:
      return;
  }
}

void GroupEvents::Exit(UnsettledEvent* event) {
  switch (event->state) {
    case State::kBlockedByKey:
      --blocked_by_key_;
      return;
    case State::kReady:
      ready_.Remove(event);
      return;
    case State::kInFlight:
    case State::kDelayed:
      timers_.Remove(event);
      return;
    case State::kDeadLettering:
      dead_lettering_.Remove(event);
      return;
    case State::kClaimed:
      return;
  }
}

}  // namespace timecache::server

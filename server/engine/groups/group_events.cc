#include "server/engine/groups/group_events.h"

#include <utility>

#include "absl/hash/hash.h"
#include "server/base/check.h"

namespace timecache::server {

namespace {

// So many are counted at once.
constexpr int64_t kChargedEvents = 256;

}  // namespace

void HeldEvents::Add(UnsettledEvent* event) {
  event->held_before = back_;
  event->held_after = nullptr;
  (back_ != nullptr ? back_->held_after : front_) = event;
  back_ = event;
  ++size_;
}

void HeldEvents::Remove(UnsettledEvent* event) {
  UnsettledEvent* const before = std::exchange(event->held_before, nullptr);
  UnsettledEvent* const after = std::exchange(event->held_after, nullptr);
  (before != nullptr ? before->held_after : front_) = after;
  (after != nullptr ? after->held_before : back_) = before;
  --size_;
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
    if (before == nullptr) SetReady(after);
  } else if (before != nullptr) {
    last_of_key_[event->key_hash] = before;
  } else {
    last_of_key_.erase(event->key_hash);
  }
  events_.erase(event->id);
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
  timers_.clear();
  dead_lettering_.clear();
  blocked_by_key_ = 0;
  last_of_key_.clear();
  events_.clear();
  reason_bytes_ = 0;
  Charge();
}

UnsettledEvent* GroupEvents::Find(uint64_t id) const {
  const auto it = events_.find(id);
  return it == events_.end() ? nullptr : it->second.get();
}

UnsettledEvent* GroupEvents::FirstFrom(uint64_t id) const {
  const auto it = events_.lower_bound(id);
  return it == events_.end() ? nullptr : it->second.get();
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
      timers_.emplace(event->due_us, event->id, event);
      return;
    case State::kDeadLettering:
      dead_lettering_.emplace(event->due_us, event->id, event);
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
      timers_.erase(Timers::key_type(event->due_us, event->id, event));
      return;
    case State::kDeadLettering:
      dead_lettering_.erase(Timers::key_type(event->due_us, event->id, event));
      return;
    case State::kClaimed:
      return;
  }
}

}  // namespace timecache::server

#include "tests/support/delivery/delivery_group.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "server/base/error.h"

namespace timecache::server {

DeliveryGroup::DeliveryGroup(const GroupOptions& options, bool dead_letters,
                             uint64_t first, DeliveryReference* events,
                             const RetainedReference* log)
    : options_(options),
      dead_letters_(dead_letters),
      first_(first),
      events_(events),
      log_(log),
      end_(first) {}

void DeliveryGroup::Append() {
  for (; end_ < log_->end(); ++end_) {
    if (!absl::StartsWith(events_->KeyOf(end_), options_.key_prefix)) continue;
    ++received_;
    unsettled_.emplace(end_, State());
    by_key_[events_->KeyOf(end_)].insert(end_);
    Refresh(end_);
  }
}

// Takes an event from one phase to another.
void DeliveryGroup::Enter(uint64_t number, State* state, Phase phase,
                          int64_t due_us) {
  timers_.erase({state->due_us, number});
  doomed_.erase({state->due_us, number});
  if (state->phase == Phase::kHeld) {
    --members_.at(state->member).held;
    held_bytes_ -= state->held_bytes;
  }
  state->phase = phase;
  state->due_us = due_us;
  state->doubtful = false;
  if (phase == Phase::kHeld) {
    ++members_.at(state->member).held;
    held_bytes_ += state->held_bytes;
  }
  if (phase == Phase::kHeld || phase == Phase::kDelayed) {
    timers_.insert({due_us, number});
  }
  if (phase == Phase::kDeadLettering) doomed_.insert({due_us, number});
  Refresh(number);
}

// No member holds it any more, and nothing keeps it from being given out.
void DeliveryGroup::Return(uint64_t number, State* state, int64_t now_us) {
  if (InVain(*state)) {
    Enter(number, state, Phase::kDeadLettering, now_us);
  } else {
    Enter(number, state, Phase::kReady, kNeverUs);
  }
}

void DeliveryGroup::Remove(uint64_t number) {
  const auto it = unsettled_.find(number);
  Enter(number, &it->second, Phase::kFresh, kNeverUs);
  unsettled_.erase(it);
  available_.erase(number);
  const auto key = by_key_.find(events_->KeyOf(number));
  key->second.erase(number);
  if (key->second.empty()) {
    by_key_.erase(key);
  } else {
    Refresh(*key->second.begin());
  }
}

void DeliveryGroup::Refresh(uint64_t number) {
  const Phase phase = unsettled_.at(number).phase;
  const bool first_of_key =
      *by_key_.at(events_->KeyOf(number)).begin() == number;
  if (first_of_key && (phase == Phase::kFresh || phase == Phase::kReady)) {
    available_.insert(number);
  } else {
    available_.erase(number);
  }
}

void DeliveryGroup::Advance(int64_t now_us) {
  while (!timers_.empty() && timers_.begin()->first <= now_us) {
    const uint64_t number = timers_.begin()->second;
    State& state = unsettled_.at(number);
    if (state.phase == Phase::kHeld) {
      ++counted_.timed_out;
      Member& member = members_.at(state.member);
      member.window = std::max(1, std::min(member.window, member.held) / 2);
      member.responsive = false;
      Fail(&state, false);
    }
    Return(number, &state, now_us);
  }
}

bool DeliveryGroup::State::IsLate(int of) const {
  return std::any_of(late.begin(), late.end(),
                     [of](const auto& each) { return each.first == of; });
}

void DeliveryGroup::Fail(State* state, bool in_time) {
  const int attempt = state->attempt();
  state->attempts = attempt;
  state->returned = false;
  state->rejected_by = in_time ? state->member : 0;
  if (in_time) return;
  std::erase_if(state->late, [this](const auto& each) {
    return !members_.contains(each.first);
  });
  state->late.emplace_back(state->member, attempt);
}

void DeliveryGroup::Update(const GroupOptions& options) {
  options_ = options;
  for (const uint64_t number : available_) {
    State& state = unsettled_.at(number);
    state.doubtful = state.doubtful || InVain(state);
  }
}

void DeliveryGroup::Reprieve(int64_t now_us) {
  for (const uint64_t number : available_) {
    State& state = unsettled_.at(number);
    state.doubtful = state.doubtful && InVain(state);
  }
  const auto doomed = doomed_;
  for (const auto& [due_us, number] : doomed) {
    State& state = unsettled_.at(number);
    if (due_us > now_us || InVain(state)) continue;
    Enter(number, &state, Phase::kReady, kNeverUs);
  }
}

void DeliveryGroup::Join(int member, int max_in_flight) {
  members_[member].max_in_flight = max_in_flight;
  members_[member].window = max_in_flight;
}

void DeliveryGroup::Leave(int member, int64_t now_us) {
  for (auto& [number, state] : unsettled_) {
    if (state.phase == Phase::kHeld && state.member == member) {
      ++counted_.returned;
      ++state.returns;
      state.returned = true;
      Return(number, &state, now_us);
    }
  }
  members_.erase(member);
}

bool DeliveryGroup::HasRoom(int member) const {
  const Member& of = members_.at(member);
  return of.held < of.window &&
         (held_bytes_ == 0 || held_bytes_ < options_.max_backlog_bytes / 2);
}

DeliveryGroup::May DeliveryGroup::MayTake(int member, const State& state,
                                          const std::set<int>& woken) const {
  if (state.IsLate(member)) return May::kNo;
  // The one that joined first gets all.
  if (options_.single_active) {
    return member == members_.begin()->first ? May::kYes : May::kNo;
  }
  if (!state.failed()) return May::kYes;
  const bool responsive = members_.at(member).responsive;
  const bool own = state.rejected_by == member;
  if (responsive && !own) return May::kYes;
  // Another one would have to take it: a responsive one, or, for its own, also
  // one that is no more unresponsive than itself.
  May may = May::kYes;
  for (const auto& [id, other] : members_) {
    if (id == member || state.IsLate(id) ||
        !(other.responsive || (own && !responsive))) {
      continue;
    }
    if (!woken.contains(id)) return May::kNo;
    may = May::kDepends;
  }
  return may;
}

void DeliveryGroup::CheckTake(int member, int max_events,
                              const EventChunk& chunk,
                              const std::set<int>& woken, int64_t now_us) {
  Advance(now_us);
  ASSERT_FALSE(chunk.closed);
  ASSERT_LE(chunk.deliveries.size(), static_cast<size_t>(max_events));
  if (chunk.deliveries.empty()) {
    const uint64_t next = NextFor(member, woken);
    ASSERT_TRUE(next == 0 || !HasRoom(member))
        << "event " << next << " was to be given out";
  }
  for (const Delivery& delivery : chunk.deliveries) {
    ASSERT_TRUE(HasRoom(member)) << "of member " << member;
    ASSERT_NO_FATAL_FAILURE(CheckGiven(member, delivery, woken, now_us));
  }
  ASSERT_TRUE(!chunk.more || HasRoom(member));
  lost_told_ += chunk.lost;
  ASSERT_EQ(lost_told_, counted_.lost) << "each loss is told once";
  ASSERT_NO_FATAL_FAILURE(CheckWatermark(chunk.watermark_us));
}

void DeliveryGroup::CheckGiven(int member, const Delivery& delivery,
                               const std::set<int>& woken, int64_t now_us) {
  const uint64_t number = delivery.event_id;
  const auto it = unsettled_.find(number);
  ASSERT_NE(it, unsettled_.end()) << "event " << number << " is settled";
  State& state = it->second;
  ASSERT_NE(state.phase, Phase::kHeld)
      << "event " << number << " is with member " << state.member;
  ASSERT_NE(state.phase, Phase::kDeadLettering) << "event " << number;
  ASSERT_NE(state.phase, Phase::kDelayed)
      << "event " << number << " is " << state.due_us - now_us << " us early";
  ASSERT_EQ(*by_key_.at(events_->KeyOf(number)).begin(), number)
      << "an earlier event of its key is not settled";
  ASSERT_TRUE(!state.doubtful || !InVain(state)) << "event " << number;
  ASSERT_NO_FATAL_FAILURE(CheckOrder(member, number, woken));
  ASSERT_NO_FATAL_FAILURE(
      events_->CheckEvent(number, delivery.event(), delivery.batch->death()));
  ASSERT_EQ(delivery.attempt, state.attempts + 1);
  ASSERT_EQ(delivery.returns, state.returns);
  ++counted_.delivered;
  if (state.attempts > 0 || state.returns > 0) ++counted_.redelivered;
  state.member = member;
  state.held_bytes =
      static_cast<int64_t>(delivery.batch->encoded(delivery.index).size()) +
      GroupEvents::kEventBytes;
  Enter(number, &state, Phase::kHeld, now_us + options_.ack_timeout_us);
}

// It is for this member, and no event before it is.
void DeliveryGroup::CheckOrder(int member, uint64_t number,
                               const std::set<int>& woken) const {
  const State& state = unsettled_.at(number);
  ASSERT_NE(MayTake(member, state, woken), May::kNo)
      << "event " << number << " is not for member " << member;
  for (const uint64_t before : available_) {
    if (before == number) return;
    const State& of = unsettled_.at(before);
    if (of.doubtful) continue;
    // What depends, depends for both alike.
    const bool alike = state.failed() && state.FailedLike(of);
    ASSERT_TRUE(MayTake(member, of, woken) != May::kYes && !alike)
        << "event " << before << " was to be given out, not " << number;
  }
  FAIL() << "event " << number << " is not available";
}

void DeliveryGroup::CheckWatermark(int64_t watermark_us) {
  ASSERT_GE(watermark_us, watermark_us_) << "the watermark went back";
  watermark_us_ = watermark_us;
  if (!unsettled_.empty()) {
    ASSERT_LT(watermark_us, log_->DeathOf(unsettled_.begin()->first))
        << "the watermark promises event " << unsettled_.begin()->first;
  }
  ASSERT_LE(events_->EndAt(watermark_us), std::max(end_, first_));
}

absl::Status DeliveryGroup::Expected(const Settlement& settlement) const {
  const absl::Status stale = ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, Reason::kStaleAttempt, "");
  if (settlement.group_id != group_id_) return stale;
  if (settlement.action == SettleAction::kNack &&
      (settlement.delay_us.value_or(0) < 0 ||
       settlement.delay_us.value_or(0) > kMaxNackDelayUs)) {
    return InvalidField("delay", "");
  }
  const auto it = unsettled_.find(settlement.event_id);
  if (it == unsettled_.end()) {
    return ErrorWithReason(absl::StatusCode::kNotFound,
                           Reason::kEventNotUnsettled, "");
  }
  const State& state = it->second;
  const bool current = state.phase == Phase::kHeld &&
                       settlement.attempt == state.attempt() &&
                       settlement.returns == state.returns;
  return current || settlement.action == SettleAction::kAck ? absl::OkStatus()
                                                            : stale;
}

void DeliveryGroup::Answer(const Settlement& settlement) {
  if (settlement.action == SettleAction::kExtend) return;
  const State& state = unsettled_.at(settlement.event_id);
  const bool current = state.phase == Phase::kHeld &&
                       settlement.attempt == state.attempt() &&
                       settlement.returns == state.returns;
  int id = current ? state.member : 0;
  for (const auto& [late, attempt] : state.late) {
    if (attempt == settlement.attempt) id = late;
  }
  const auto it = members_.find(id);
  if (it == members_.end()) return;
  Member& member = it->second;
  member.window = std::min(member.window + 1, member.max_in_flight);
  member.responsive = true;
}

void DeliveryGroup::AnswerLate(const Settlement& settlement) {
  Answer(settlement);
  if (settlement.action == SettleAction::kExtend) return;
  State& state = unsettled_.at(settlement.event_id);
  std::erase_if(state.late, [&](const auto& each) {
    return each.second == settlement.attempt;
  });
}

void DeliveryGroup::Settle(const Settlement& settlement, int64_t now_us) {
  const uint64_t number = settlement.event_id;
  switch (settlement.action) {
    case SettleAction::kAck:
      ++counted_.acked;
      Remove(number);
      return;
    case SettleAction::kPutBack:
      ++counted_.put_back;
      Remove(number);
      return;
    case SettleAction::kNack:
      ++counted_.nacked;
      Fail(&unsettled_.at(number), true);
      EndNack(number, settlement.delay_us.value_or(0), now_us);
      return;
    case SettleAction::kTerminate:  // Not played.
    case SettleAction::kExtend:
      ++counted_.extended;
      Enter(number, &unsettled_.at(number), Phase::kHeld,
            now_us + options_.ack_timeout_us);
      return;
  }
}

void DeliveryGroup::EndNack(uint64_t number, int64_t delay_us, int64_t now_us) {
  State& state = unsettled_.at(number);
  if (delay_us == 0 || InVain(state)) {
    Return(number, &state, now_us);
  } else {
    Enter(number, &state, Phase::kDelayed, now_us + delay_us);
  }
}

void DeliveryGroup::CheckDeadLetter(uint64_t number, int attempt, bool put,
                                    int64_t now_us) {
  Advance(now_us);
  const auto it = unsettled_.find(number);
  ASSERT_NE(it, unsettled_.end()) << "event " << number << " is settled";
  State& state = it->second;
  ASSERT_TRUE(state.phase == Phase::kDeadLettering ||
              state.phase == Phase::kReady);
  ASSERT_TRUE(InVain(state)) << "event " << number;
  ASSERT_EQ(attempt, state.attempts);
  ASSERT_TRUE(state.phase == Phase::kReady || state.due_us <= now_us)
      << "event " << number << " was tried again too soon";
  if (put) {
    ++counted_.dead_lettered;
    dead_batches_.insert(log_->BatchOf(number));
    ++dead_letters_since_;
    Remove(number);
  } else {
    ++counted_.dead_letter_failures;
    Enter(number, &state, Phase::kDeadLettering,
          now_us + options_.ack_timeout_us);
  }
}

void DeliveryGroup::CheckLost(const GroupStatistics& statistics,
                              bool squeezed) {
  ASSERT_GE(statistics.lost, counted_.lost);
  std::set<size_t> batches = std::exchange(dead_batches_, {});
  int64_t bytes = EventBytes() + dead_letters_since_ * GroupEvents::kEventBytes;
  dead_letters_since_ = 0;
  if (statistics.lost == counted_.lost) return;
  for (const auto& [number, state] : unsettled_) {
    batches.insert(log_->BatchOf(number));
  }
  for (const size_t batch : batches) bytes += log_->BytesOfBatch(batch);
  ASSERT_TRUE(squeezed || bytes > options_.max_backlog_bytes)
      << "lost without need";
  uint64_t held = 0;
  for (const auto& [id, member] : members_) held += member.held;
  ASSERT_GE(held, statistics.in_flight);
  const uint64_t held_lost = squeezed ? held - statistics.in_flight : 0;
  const uint64_t lost = statistics.lost - counted_.lost;
  counted_.lost = statistics.lost;
  ASSERT_GE(lost, held_lost);
  if (held_lost > 0) {
    LoseHeld(lost, held_lost);
  } else {
    LoseOldest(lost);
  }
}

// The oldest that no member holds.
void DeliveryGroup::LoseOldest(uint64_t lost) {
  auto it = unsettled_.begin();
  for (; lost > 0; --lost) {
    while (it != unsettled_.end() && it->second.phase == Phase::kHeld) ++it;
    ASSERT_NE(it, unsettled_.end()) << "lost more than it had";
    Remove((it++)->first);
  }
}

// All that no member holds, but for the newest batch, and that was not enough:
// then whole batches, the oldest first.
void DeliveryGroup::LoseHeld(uint64_t lost, uint64_t held_lost) {
  const size_t newest = log_->BatchOf(end_ - 1);
  std::vector<uint64_t> numbers;
  for (const auto& [number, state] : unsettled_) {
    if (state.phase == Phase::kHeld || log_->BatchOf(number) == newest) {
      continue;
    }
    numbers.push_back(number);
  }
  ASSERT_GT(lost, numbers.size()) << "what members hold goes last";
  for (const uint64_t number : numbers) Remove(number);
  lost -= numbers.size();
  size_t batch = 0;
  for (; lost > 0; --lost) {
    ASSERT_FALSE(unsettled_.empty()) << "lost more than it had";
    const auto& [number, state] = *unsettled_.begin();
    batch = log_->BatchOf(number);
    if (state.phase == Phase::kHeld) --held_lost;
    Remove(number);
  }
  ASSERT_EQ(held_lost, 0u) << "held, and lost before older ones";
  ASSERT_TRUE(unsettled_.empty() ||
              log_->BatchOf(unsettled_.begin()->first) != batch)
      << "a batch goes whole";
}

void DeliveryGroup::CheckMemory(const GroupStatistics& statistics) const {
  if (statistics.backlog_bytes <= options_.max_backlog_bytes) return;
  std::set<size_t> batches;
  for (const auto& [number, state] : unsettled_) {
    if (state.phase == Phase::kHeld) batches.insert(log_->BatchOf(number));
  }
  batches.insert(log_->BatchOf(unsettled_.rbegin()->first));
  int64_t bytes = EventBytes();
  for (const size_t batch : batches) bytes += log_->BytesOfBatch(batch);
  ASSERT_LE(statistics.backlog_bytes, bytes);
}

void DeliveryGroup::CheckStatistics(const GroupStatistics& statistics) const {
  uint64_t held = 0;
  for (const auto& [id, member] : members_) held += member.held;
  const int64_t oldest_us =
      unsettled_.empty() ? kNeverUs : log_->DeathOf(unsettled_.begin()->first);
  int64_t unresponsive = 0;
  for (const auto& [id, member] : members_) {
    if (!member.responsive) ++unresponsive;
  }
  ASSERT_EQ(statistics.members, static_cast<int64_t>(members_.size()));
  ASSERT_EQ(statistics.unresponsive_members, unresponsive);
  ASSERT_EQ(statistics.backlog, unsettled_.size() - held);
  ASSERT_EQ(statistics.in_flight, held);
  ASSERT_EQ(statistics.oldest_unsettled_us, oldest_us);
  ASSERT_EQ(statistics.delivered, counted_.delivered);
  ASSERT_EQ(statistics.redelivered, counted_.redelivered);
  ASSERT_EQ(statistics.acked, counted_.acked);
  ASSERT_EQ(statistics.nacked, counted_.nacked);
  ASSERT_EQ(statistics.put_back, counted_.put_back);
  ASSERT_EQ(statistics.timed_out, counted_.timed_out);
  ASSERT_EQ(statistics.returned, counted_.returned);
  ASSERT_EQ(statistics.extended, counted_.extended);
  ASSERT_EQ(statistics.suspects, 0u);
  ASSERT_EQ(statistics.dead_lettered, counted_.dead_lettered);
  ASSERT_EQ(statistics.dead_letter_failures, counted_.dead_letter_failures);
  ASSERT_EQ(statistics.dead_letters_dropped, 0u);
  ASSERT_EQ(statistics.lost, counted_.lost);
  // Every event is in one of these.
  ASSERT_EQ(statistics.acked + statistics.put_back + statistics.dead_lettered +
                statistics.lost + statistics.backlog + statistics.in_flight,
            statistics.events);
  ASSERT_EQ(statistics.events, received_);
}

std::vector<Settlement> DeliveryGroup::Held(int member) const {
  std::vector<Settlement> held;
  for (const auto& [number, state] : unsettled_) {
    if (state.phase != Phase::kHeld || state.member != member) continue;
    Settlement settlement = {number, state.attempt()};
    settlement.returns = state.returns;
    settlement.group_id = group_id_;
    held.push_back(settlement);
  }
  return held;
}

uint64_t DeliveryGroup::NextFor(int member, const std::set<int>& woken) const {
  for (const uint64_t number : available_) {
    const State& state = unsettled_.at(number);
    if (!state.doubtful && MayTake(member, state, woken) == May::kYes) {
      return number;
    }
  }
  return 0;
}

void DeliveryGroup::CheckWoken(const std::set<int>& woken) const {
  std::set<std::pair<int, std::vector<std::pair<int, int>>>> checked;
  for (const uint64_t number : available_) {
    const State& state = unsettled_.at(number);
    // Those that failed alike are for the same members.
    if (state.doubtful ||
        !checked.insert({state.rejected_by, state.late}).second) {
      continue;
    }
    bool may = false;
    bool is_woken = false;
    for (const auto& [id, member] : members_) {
      const May of = MayTake(id, state, woken);
      may = may || (of == May::kYes && HasRoom(id));
      is_woken = is_woken || (of != May::kNo && woken.contains(id));
    }
    ASSERT_TRUE(is_woken || !may)
        << "nobody who may be given event " << number << " was woken";
  }
}

int64_t DeliveryGroup::NextDueUs() const {
  int64_t due_us = kNeverUs;
  if (!timers_.empty()) due_us = timers_.begin()->first;
  if (!doomed_.empty()) due_us = std::min(due_us, doomed_.begin()->first);
  return due_us;
}

}  // namespace timecache::server

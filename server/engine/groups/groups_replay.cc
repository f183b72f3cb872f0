#include "server/engine/groups/groups_replay.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"

namespace timecache::server {
namespace {

using Kind = GroupChange::Kind;

// Of an event; more are not distinguished.
constexpr int kMaxReturns = 1'000'000'000;

absl::Status NotAGroupsChange(const GroupChange& change,
                              absl::string_view what) {
  return absl::DataLossError(
      absl::StrCat("a change of consumer group ", change.name, " ", what));
}

FailureReason FailureReasonOf(Kind kind) {
  if (kind == Kind::kNacked) return FailureReason::kNacked;
  return kind == Kind::kGivenUp ? FailureReason::kTerminated
                                : FailureReason::kTimedOut;
}

}  // namespace

// --- One group.

ReplayedGroup::ReplayedGroup(const GroupChange& exists,
                             absl::string_view key_prefix,
                             absl::string_view map)
    : kept_(map) {
  state_.name = std::string(exists.name);
  state_.created_by = std::string(exists.created_by);
  state_.options = exists.options;
  state_.options.key_prefix = std::string(key_prefix);
  state_.unused_since_us = exists.unused_since_us;
  state_.first_event = exists.first;
  state_.next_event = exists.end;
  state_.counts = exists.statistics;
  state_.unreported = exists.unreported;
}

void ReplayedGroup::OnAppend(uint64_t first_event,
                             const std::shared_ptr<const EventBatch>& batch) {
  OnAppendSelected(first_event, batch);
}

void ReplayedGroup::OnAppendSelected(uint64_t first_event,
                                     const SelectedEvents& selected) {
  const uint64_t end = first_event + static_cast<uint64_t>(selected.size);
  if (end <= state_.next_event) return;
  const uint64_t from = std::max(first_event, state_.next_event);
  const int skipped = selected.IndexFrom(static_cast<int>(from - first_event));
  kept_.Append(first_event, selected, state_.next_event);
  state_.next_event = end;
  // As GroupLedger::Append.
  state_.first_event +=
      end - from - static_cast<uint64_t>(selected.count() - skipped);
}

// Of kOptions: what others have is to come, or fixed.
void ReplayedGroup::SetOptions(GroupOptions options) {
  options.key_prefix = std::move(state_.options.key_prefix);
  state_.options = std::move(options);
}

absl::Status ReplayedGroup::Apply(const GroupChange& change,
                                  const ExpiryLog& log) {
  if (change.kind == Kind::kSeek) {
    Seek(change, log);
    return absl::OkStatus();
  }
  if (change.first > change.end || change.end > state_.next_event) {
    return NotAGroupsChange(
        change, absl::StrCat("names events to ", change.end,
                             ", where they come to ", state_.next_event));
  }
  switch (change.kind) {
    case Kind::kOptions:
      SetOptions(change.options);
      break;
    case Kind::kRetryDelays:
      state_.options.retry_delays_us = change.options.retry_delays_us;
      break;
    case Kind::kUnused:
      state_.unused_since_us = change.unused_since_us;
      break;
    case Kind::kLossReported:
      state_.unreported = 0;
      break;
    case Kind::kIdentity:
      state_.id = change.id;
      break;
    case Kind::kLaterOptions:
      ForEachLaterOption(change.options, &state_.options,
                         [](const auto& from, auto* to) { *to = from; });
      break;
    case Kind::kReason: {
      const auto text = std::make_shared<const std::string>(change.reason_text);
      kept_.Visit(change.first, change.end, [&](uint64_t number) {
        state_.delivered[number].reason_text = text;
      });
      break;
    }
    case Kind::kKept:
      kept_.Insert(change.first, change.event, change.death);
      if (change.attempt > 0) {
        // Its kPast may be missing, if it is known.
        PastDeliveries& past = state_.delivered[change.first];
        past.attempts = change.attempt;
        past.ready_us = change.ready_us;
      }
      break;
    case Kind::kPast:
      kept_.Visit(change.first, change.end, [&](uint64_t number) {
        PastDeliveries& past = state_.delivered[number];
        past.returns = change.returns;
        past.returned = change.returned;
        past.reason = change.reason;
        past.ready_us = change.ready_us;
      });
      break;
    case Kind::kCounts:
      for (const GroupCount count : kLaterGroupCounts) {
        state_.counts.*count = change.statistics.*count;
      }
      break;
    default:
      if (change.settles()) Settle(change);
      if (change.fails()) Fail(change);
      if (change.drops()) Drop(change);
  }
  return absl::OkStatus();
}

// Before the events change.
void ReplayedGroup::CountDelivery(const GroupChange& change) {
  if (change.attempt == 0) return;
  state_.counts.delivered += change.end - change.first;
  // Others are known for what an operator did.
  state_.counts.redelivered += static_cast<uint64_t>(std::count_if(
      state_.delivered.lower_bound(change.first),
      state_.delivered.lower_bound(change.end), [](const auto& each) {
        return each.second.attempts > 0 || each.second.returns > 0;
      }));
}

// As GroupLedger::Seek. The log here may be further: what died since is in it.
void ReplayedGroup::Seek(const GroupChange& change, const ExpiryLog& log) {
  const uint64_t before = kept_.size();
  const uint64_t events = this->events();
  const bool drop = change.attempt == 1;
  if (drop) {
    kept_.Remove(0, change.first);
    state_.delivered.erase(state_.delivered.begin(),
                           state_.delivered.lower_bound(change.first));
  }
  state_.delivered.erase(state_.delivered.lower_bound(change.first),
                         state_.delivered.end());
  kept_.CutFrom(change.end);
  for (const ExpiryLog::Followed& each : log.RetainedFrom(
           change.end, log.SelectRetained(state_.options.key_prefix))) {
    kept_.Append(each.first_event, each.events, 0);
  }
  if (drop || change.end < state_.next_event) {
    state_.next_event = std::max(change.end, log.next_event());
  }
  state_.counts.delivered += change.statistics.delivered;
  state_.counts.redelivered += change.statistics.redelivered;
  state_.counts.skipped += change.statistics.skipped;
  state_.counts.lost += change.unreported;
  state_.unreported += change.unreported;
  // So that what died since is counted once.
  const uint64_t since = kept_.CountFrom(change.id);
  state_.first_event = state_.next_event - since;
  state_.counts.moved = events + (kept_.size() - before) +
                        change.statistics.skipped + change.unreported - since;
}

void ReplayedGroup::Remove(const GroupChange& change) {
  kept_.Remove(change.first, change.end);
  state_.delivered.erase(state_.delivered.lower_bound(change.first),
                         state_.delivered.lower_bound(change.end));
}

void ReplayedGroup::Settle(const GroupChange& change) {
  const uint64_t events = change.end - change.first;
  CountDelivery(change);
  Remove(change);
  if (change.kind == Kind::kAcked) state_.counts.acked += events;
  if (change.kind == Kind::kPutBack) state_.counts.put_back += events;
  if (change.kind == Kind::kDeadLettered) state_.counts.dead_lettered += events;
  if (change.kind == Kind::kTerminated) state_.counts.terminated += events;
}

void ReplayedGroup::Fail(const GroupChange& change) {
  const uint64_t events = change.end - change.first;
  CountDelivery(change);
  const bool returned = change.kind == Kind::kReturned;
  kept_.Visit(change.first, change.end, [&](uint64_t number) {
    PastDeliveries& past = state_.delivered[number];
    past.attempts = std::max(change.attempt - (returned ? 1 : 0), 0);
    if (returned) past.returns = std::min(past.returns, kMaxReturns) + 1;
    past.returned = returned;
    if (!returned) {
      past.reason = FailureReasonOf(change.kind);
      past.reason_text = nullptr;
    }
    past.ready_us = change.ready_us;
  });
  if (change.kind == Kind::kNacked) state_.counts.nacked += events;
  if (change.kind == Kind::kTimedOut) state_.counts.timed_out += events;
  if (returned) state_.counts.returned += events;
}

void ReplayedGroup::Drop(const GroupChange& change) {
  const uint64_t events = change.end - change.first;
  CountDelivery(change);
  Remove(change);
  state_.counts.lost += events;
  state_.unreported += events;
  if (change.kind == Kind::kLetterDropped) {
    state_.counts.dead_letters_dropped += events;
  }
}

GroupState ReplayedGroup::Take() {
  const GroupStatistics& counts = state_.counts;
  const uint64_t known = kept_.size() + counts.acked + counts.put_back +
                         counts.dead_lettered + counts.lost +
                         counts.terminated + counts.skipped;
  const uint64_t events = this->events();
  if (known < events) {
    state_.counts.lost += events - known;
    state_.unreported += events - known;
  }
  state_.kept = kept_.Take();
  return std::move(state_);
}

// --- All groups.

GroupsReplay::GroupsReplay(ConsumerGroups* groups, ExpiryLog* log,
                           absl::string_view map)
    : groups_(groups), log_(log), map_(map) {}

GroupsReplay::~GroupsReplay() {
  for (const auto& [name, group] : by_name_) log_->Unfollow(group.get());
}

absl::Status GroupsReplay::Apply(const GroupChange& change) {
  if (change.kind == Kind::kExists || change.kind == Kind::kOptions ||
      change.kind == Kind::kLaterOptions || change.kind == Kind::kRetryDelays ||
      change.kind == Kind::kKeyPrefix) {
    if (absl::Status status = Validate(change.options); !status.ok()) {
      return NotAGroupsChange(change, status.message());
    }
  }
  const std::string name(change.name);
  const auto known = by_name_.find(name);
  switch (change.kind) {
    case Kind::kExists:
      if (known == by_name_.end()) Begin(change);
      key_prefixes_.erase(name);
      return absl::OkStatus();
    case Kind::kKeyPrefix:
      key_prefixes_[name] = change.options.key_prefix;
      return absl::OkStatus();
    case Kind::kDeleted:
      End(name);
      return absl::OkStatus();
    case Kind::kExpired:
      End(name);
      Remember(change);
      return absl::OkStatus();
    default:
      if (known == by_name_.end()) return absl::OkStatus();
      // Events that the log has skipped are not reported: those of a salvaged
      // journal.
      known->second->BeginAt(log_->next_event());
      return known->second->Apply(change, *log_);
  }
}

void GroupsReplay::Begin(const GroupChange& exists) {
  const std::string name(exists.name);
  std::erase_if(expired_,
                [&name](const auto& each) { return each.name == name; });
  auto group =
      std::make_unique<ReplayedGroup>(exists, key_prefixes_[name], map_);
  // It takes the log's events from its next one on.
  group->BeginAt(log_->Follow(group.get(), ExpiryLog::Start::kEarliest, 0));
  by_name_.emplace(name, std::move(group));
}

void GroupsReplay::End(const std::string& name) {
  const auto it = by_name_.find(name);
  if (it == by_name_.end()) return;
  log_->Unfollow(it->second.get());
  by_name_.erase(it);
}

// One that a walk has appended again comes after groups that expired during the
// walk, and after itself: its last record stands in the order of the walk.
void GroupsReplay::Remember(const GroupChange& expired) {
  std::erase_if(expired_, [&expired](const auto& each) {
    return each.name == expired.name;
  });
  if (expired_.size() == ConsumerGroups::kMaxGroups) expired_.pop_front();
  expired_.push_back(
      {std::string(expired.name), expired.unreported, expired.end});
}

void GroupsReplay::Finish(int64_t now_us) {
  for (const auto& [name, group] : by_name_) {
    log_->Unfollow(group.get());
    group->BeginAt(log_->next_event());
    groups_->Restore(group->Take(), now_us);
  }
  by_name_.clear();
  groups_->RestoreExpired(std::move(expired_));
}

}  // namespace timecache::server

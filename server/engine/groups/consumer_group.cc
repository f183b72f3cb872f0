#include "server/engine/groups/consumer_group.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"

namespace timecache::server {

ConsumerGroup::ConsumerGroup(std::string name, const GroupOptions& options,
                             const Owner& owner,
                             std::function<void(int64_t due_us)> schedule)
    : name_(std::move(name)),
      created_by_(owner.created_by),
      key_prefix_(options.key_prefix),
      log_(owner.log),
      account_(owner.account),
      schedule_(std::move(schedule)),
      changes_(name_),
      ledger_(options, &scheduler_, owner.account, &changes_),
      id_(owner.id),
      delivery_id_(owner.id) {
  scheduler_.SetSingleActive(options.single_active);
}

ConsumerGroup::~ConsumerGroup() = default;

GroupOptions ConsumerGroup::options() const {
  absl::MutexLock lock(&mu_);
  return ledger_.options();
}

GroupStatistics ConsumerGroup::GetStatistics() const {
  absl::MutexLock lock(&mu_);
  GroupStatistics statistics = ledger_.GetStatistics();
  statistics.members = static_cast<int64_t>(scheduler_.streams().size());
  statistics.fetched = static_cast<uint64_t>(fetched_.held_.size());
  statistics.unresponsive_members =
      static_cast<int64_t>(scheduler_.unresponsive());
  statistics.unused_since_us = unused_since_us_;
  return statistics;
}

void ConsumerGroup::SetOptions(const GroupOptions& options) {
  WakingLock lock(this);
  ledger_.SetOptions(options);
  changes_.Append({.kind = GroupChange::Kind::kOptions, .options = options});
  AppendLaterOptions();
  if (unused_since_us_ != recorded_unused_us_) RecordUnused();
  scheduler_.SetSingleActive(options.single_active);
  ledger_.Trim();
}

void ConsumerGroup::SetFork(uint64_t fork) {
  Lock lock(this);
  fork_ = fork & kMaxGroupId;
  delivery_id_ = id_ ^ fork_;
}

void ConsumerGroup::SetDeadLetters(bool possible) {
  Lock lock(this);
  ledger_.SetDeadLetters(possible);
}

void ConsumerGroup::Close() {
  Lock lock(this);
  CloseLocked();
}

void ConsumerGroup::CloseLocked() {
  if (std::exchange(closed_, true)) return;
  scheduler_.WakeAll();
  ledger_.Clear();
}

bool ConsumerGroup::Use(int64_t now_us) {
  Lock lock(this);
  NoteUse(now_us);
  return !closed_;
}

bool ConsumerGroup::UnusedForTooLong(int64_t now_us) const {
  absl::MutexLock lock(&mu_);
  return UnusedForTooLongLocked(now_us);
}

bool ConsumerGroup::UnusedForTooLongLocked(int64_t now_us) const {
  const int64_t ttl_us = ledger_.options().unused_ttl_us;
  return !closed_ && ttl_us > 0 && scheduler_.members() == 0 &&
         unused_since_us_ != kNeverUs && now_us - unused_since_us_ >= ttl_us;
}

std::optional<ConsumerGroup::Expired> ConsumerGroup::CloseIfUnused(
    int64_t now_us) {
  Lock lock(this);
  if (!UnusedForTooLongLocked(now_us)) return std::nullopt;
  const Expired expired = {ledger_.Unsettled(), ledger_.next_event()};
  CloseLocked();
  return expired;
}

// --- Members.

std::unique_ptr<ConsumerGroup::Member> ConsumerGroup::Join(
    int max_in_flight, std::function<void()> wake, JoinAs as) {
  auto member = std::unique_ptr<Member>(
      new Member(this, max_in_flight, std::move(wake), std::move(as)));
  Lock lock(this);
  scheduler_.Join(member.get());
  if (!member->fetches_) SetUnusedSince(kNeverUs);
  return member;
}

GroupMember::~GroupMember() { Leave(INT64_MIN, StreamEnd::kByServer); }

void GroupMember::Leave(int64_t now_us, StreamEnd end) {
  ConsumerGroup* const group = std::exchange(group_, nullptr);
  if (group == nullptr) return;
  if (fetches_) {
    group->EndFetch(this, now_us, end);
  } else {
    group->Leave(this, now_us, end);
  }
}

EventChunk GroupMember::Take(int64_t now_us, int max_events, int64_t max_bytes,
                             bool at_least_one) {
  return group_->Take(this, now_us, {max_events, max_bytes, at_least_one});
}

// Of a stream that its client ended, any event may be the cause: while it held
// suspects, one of these.
void ConsumerGroup::Leave(Member* member, int64_t now_us, StreamEnd end) {
  using Suspected = GroupLedger::Suspected;
  auto suspected = Suspected::kNone;
  {
    Lock lock(this);
    ledger_.AdvanceTo(now_us);
    scheduler_.Leave(member);
    scheduler_.BeginReturn();
    if (end == StreamEnd::kByClient) {
      suspected =
          member->suspects_ > 0 ? Suspected::kSuspects : Suspected::kAll;
    }
  }
  for (bool more = true; more;) {
    WakingLock lock(this);
    // Once closed, no member holds any event.
    more = !closed_ && ledger_.GiveBack(member, suspected, kMaxUnderLock);
    if (!more) scheduler_.EndReturn();
  }
}

ConsumerGroup::Chunk ConsumerGroup::Take(Member* member, int64_t now_us,
                                         const TakeLimits& limits) {
  Chunk chunk;
  // Before the lock, as the log's comes first: by now all events of deaths at
  // or before it have arrived.
  const int64_t log_us = log_->watermark_us();
  WakingLock lock(this);
  chunk.closed =
      closed_ || (member->fetches_ && ledger_.options().single_active);
  if (chunk.closed) return chunk;
  ledger_.PassTime(now_us);
  TakeEvents(member, limits, &chunk);
  PassWatermark(log_us);
  PassDelivered(member, log_us, &chunk);
  if (IsKept()) kept_.watermark_us = watermark_us_;
  chunk.watermark_us = kept_.watermark_us;
  if (IsKept() || kept_.lost == ledger_.unreported_lost()) {
    chunk.lost = ledger_.TakeLost();
    kept_.lost = keeping_.lost = 0;
    if (member->fetches_) member->fetched_lost_ += chunk.lost;
  }
  return chunk;
}

void ConsumerGroup::PassWatermark(int64_t log_us) {
  watermark_us_ =
      std::max(watermark_us_, std::min(log_us, ledger_.OldestUs() - 1));
}

bool ConsumerGroup::BeginKeeping() {
  const int64_t log_us = log_->watermark_us();
  Lock lock(this);
  awaits_log_ = true;
  if (closed_ || is_keeping_ || IsKept()) return false;
  PassWatermark(log_us);
  keeping_ = {changes_.count(), watermark_us_, ledger_.unreported_lost()};
  is_keeping_ = true;
  return true;
}

void ConsumerGroup::EndKeeping(bool kept) {
  int64_t due_us;
  {
    Lock lock(this);
    is_keeping_ = false;
    if (!kept || closed_) return;
    kept_ = keeping_;
    if (kept_.lost == 0) return;
    due_us = WakeOthers();
    // A member may be at its window for long, while losses continue.
    scheduler_.WakeFull();
  }
  if (due_us != kNeverUs) schedule_(due_us);
}

void ConsumerGroup::TakeEvents(Member* member, const TakeLimits& limits,
                               Chunk* chunk) {
  const uint64_t share =
      scheduler_.BeginTake(member, ledger_.AvailableTo(member));
  const int most = std::min(limits.events, member->room());
  if (most > 0) {
    chunk->deliveries.reserve(std::min(share, static_cast<uint64_t>(most)));
  }
  int64_t bytes = 0;
  int may_open = kMaxOpened;
  while (static_cast<int>(chunk->deliveries.size()) < most &&
         chunk->deliveries.size() < share) {
    UnsettledEvent* const event = ledger_.NextFor(member, &may_open);
    if (event == nullptr) break;
    bytes += static_cast<int64_t>(
        event->retained->batch->encoded(event->index).size());
    // At least one; of a fetch, which is one answer, in all.
    const bool has_one = !limits.at_least_one || !chunk->deliveries.empty() ||
                         !member->fetched_.empty();
    if (has_one && bytes > limits.bytes) break;
    chunk->deliveries.push_back(
        ledger_.Give(event, member->fetches_ ? &fetched_ : member));
    Delivery& delivery = chunk->deliveries.back();
    delivery.group_id = delivery_id_;
    if (member->fetches_) {
      member->fetched_.push_back(
          {delivery.event_id, delivery.attempt, delivery.returns});
    }
    chunk->undoable |= event->was_delivered() && !IsKept();
  }
  // First: settlements in other partitions make room at any time.
  chunk->at_limit = member->held_.room() == 0;
  chunk->more =
      !chunk->at_limit && member->HasRoom() && ledger_.AvailableTo(member) > 0;
  if (!chunk->more) scheduler_.EndTake(member);
}

// Returns when there is work next.
int64_t ConsumerGroup::WakeOthers() {
  if (closed_) return kNeverUs;
  MemberScheduler::Supply supply = ledger_.Available();
  // Any member may report a loss: first to have it stored, and again once it
  // is.
  const uint64_t lost = ledger_.unreported_lost();
  if (lost > keeping_.lost || (lost > 0 && lost == kept_.lost)) {
    ++supply.unfailed;
  }
  scheduler_.Wake(
      supply,
      [this](const Member* member, const Failures& failures)
          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
            return ledger_.MayGet(member, failures);
          },
      ledger_.now_us());
  if (announced_event_ < ledger_.next_event()) AnnounceAllDelivered();
  return DueUs();
}

int64_t ConsumerGroup::DueUs(bool dead_letters) const {
  int64_t due_us = std::min(ledger_.DueUs(dead_letters), scheduler_.due_us());
  if (scheduler_.members() > 0) return std::min(due_us, news_due_us_);
  // Advance will pass the time.
  if (unused_since_us_ == kNeverUs) return std::min(due_us, ledger_.now_us());
  const int64_t ttl_us = ledger_.options().unused_ttl_us;
  return ttl_us == 0 ? due_us : std::min(due_us, unused_since_us_ + ttl_us);
}

// --- Events.

void ConsumerGroup::OnAppend(uint64_t first_event,
                             const std::shared_ptr<const EventBatch>& batch) {
  OnAppendSelected(first_event, batch);
}

void ConsumerGroup::OnAppendSelected(uint64_t first_event,
                                     const SelectedEvents& selected) {
  Lock lock(this);
  if (closed_) return;
  ledger_.Append(first_event, selected);
  WakeOthers();
}

EventHolder::Holding ConsumerGroup::Backlog(EventHolder::Kind kind) const {
  absl::MutexLock lock(&mu_);
  if (closed_) return {};
  return {ledger_.DroppableBytes(kind), ledger_.OldestPublishedUs()};
}

// Called from the reclaimer, which must not call the map's driver: a woken
// member that stays silent is skipped when other work is due.
bool ConsumerGroup::DropBacklog(EventHolder::Kind kind, int64_t bytes) {
  Lock lock(this);
  if (closed_ || !ledger_.Drop(kind, bytes)) return false;
  WakeOthers();
  return true;
}

void ConsumerGroup::Start(uint64_t first_event, uint64_t inherited,
                          int64_t now_us) {
  const int64_t log_us = log_->watermark_us();
  Lock lock(this);
  ledger_.AdvanceTo(now_us);
  ledger_.Start(first_event, inherited);
  unused_since_us_ = recorded_unused_us_ = now_us;
  AppendExists();
  ledger_.TakeEarly();
  ledger_.Trim();
  BeginWatermark(log_us);
}

// --- Changes.

void ConsumerGroup::Restore(const GroupState& state, int64_t now_us) {
  const int64_t log_us = log_->watermark_us();
  Lock lock(this);
  ledger_.Restore(state, now_us);
  unused_since_us_ = recorded_unused_us_ = state.unused_since_us;
  BeginWatermark(log_us);
}

// No settlement has happened that a crash could undo.
void ConsumerGroup::BeginWatermark(int64_t log_us) {
  PassWatermark(log_us);
  kept_.watermark_us = watermark_us_;
}

void ConsumerGroup::SetSink(GroupChangeSink* sink) {
  Lock lock(this);
  changes_.SetSink(sink);
}

void ConsumerGroup::SetUnusedSince(int64_t us) {
  if (std::exchange(unused_since_us_, us) != us) RecordUnused();
}

void ConsumerGroup::RecordUnused() {
  recorded_unused_us_ = unused_since_us_;
  if (closed_) return;
  changes_.Append({.kind = GroupChange::Kind::kUnused,
                   .unused_since_us = unused_since_us_});
}

void ConsumerGroup::AppendExists() {
  GroupChange change = {.kind = GroupChange::Kind::kExists,
                        .created_by = created_by_,
                        .unused_since_us = unused_since_us_};
  recorded_unused_us_ = unused_since_us_;
  if (!key_prefix_.empty()) {
    changes_.Append(
        {.kind = GroupChange::Kind::kKeyPrefix, .options = ledger_.options()});
  }
  ledger_.Describe(&change);
  changes_.Append(change);
  changes_.Append({.kind = GroupChange::Kind::kIdentity, .id = id_});
  AppendLaterOptions();
}

void ConsumerGroup::AppendLaterOptions() {
  bool differ = false;
  GroupOptions defaults;
  ForEachLaterOption(
      ledger_.options(), &defaults,
      [&differ](const auto& is, auto* other) { differ |= is != *other; });
  if (differ) {
    changes_.Append({.kind = GroupChange::Kind::kLaterOptions,
                     .options = ledger_.options()});
  }
  if (!ledger_.options().retry_delays_us.empty()) {
    changes_.Append({.kind = GroupChange::Kind::kRetryDelays,
                     .options = ledger_.options()});
  }
}

void ConsumerGroup::AppendCounts() {
  GroupChange state;
  ledger_.Describe(&state);
  const bool has_counts = std::any_of(
      std::begin(kLaterGroupCounts), std::end(kLaterGroupCounts),
      [&state](GroupCount count) { return state.statistics.*count > 0; });
  if (!has_counts) return;
  changes_.Append(
      {.kind = GroupChange::Kind::kCounts, .statistics = state.statistics});
}

bool ConsumerGroup::AppendAgain(uint64_t* event, int* events, int64_t* bytes) {
  Lock lock(this);
  if (closed_) return false;
  if (*event == 0) AppendExists();
  int most = std::min(*events, kMaxUnderLock);
  *events -= most;
  const std::optional<uint64_t> next = ledger_.AppendKept(*event, &most, bytes);
  *events += most;
  if (!next.has_value()) AppendCounts();
  *event = next.value_or(0);
  return next.has_value();
}

// --- Settling.

absl::Status ConsumerGroup::CheckGroup(const Settlement& settlement) const {
  if (settlement.group_id == delivery_id_) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, Reason::kStaleAttempt,
      absl::StrCat("event ", settlement.event_id,
                   " was delivered by another group: one of the same name, ",
                   name_, ", that is gone, or of another namespace"));
}

size_t ConsumerGroup::Settle(absl::Span<const Settlement> settlements,
                             int64_t now_us, absl::Span<SettleResult> results) {
  WakingLock lock(this);
  ledger_.PassTime(now_us);
  size_t settled = 0;
  const size_t most = std::min(settlements.size(), size_t{kMaxUnderLock});
  for (; settled < most; ++settled) {
    const Settlement& settlement = settlements[settled];
    if (settlement.action == SettleAction::kPutBack) break;
    results[settled].version = 0;
    results[settled].status = CheckGroup(settlement);
    if (results[settled].status.ok()) {
      results[settled].status = ledger_.Settle(settlement);
    }
  }
  return settled;
}

absl::StatusOr<Delivery> ConsumerGroup::BeginPutBack(
    const Settlement& settlement, int64_t now_us) {
  WakingLock lock(this);
  ledger_.PassTime(now_us);
  if (absl::Status status = CheckGroup(settlement); !status.ok()) return status;
  const absl::StatusOr<UnsettledEvent*> event = ledger_.Claim(settlement);
  if (!event.ok()) return event.status();
  return (*event)->ToDelivery();
}

void ConsumerGroup::EndPutBack(uint64_t event_id, bool done, int64_t now_us) {
  WakingLock lock(this);
  ledger_.AdvanceTo(now_us);
  ledger_.EndPutBack(event_id, done);
}

// --- Time.

int64_t ConsumerGroup::NextDueUs(bool dead_letters) const {
  absl::MutexLock lock(&mu_);
  return closed_ ? kNeverUs : DueUs(dead_letters);
}

bool ConsumerGroup::Advance(int64_t now_us, DeadLetterBudget* room,
                            std::vector<Delivery>* dead_letters) {
  Lock lock(this);
  if (closed_) return false;
  if (scheduler_.members() == 0 && unused_since_us_ == kNeverUs) {
    SetUnusedSince(now_us);
  }
  bool more = ledger_.PassTime(now_us);
  ledger_.Trim();
  while (room->events > 0 && room->bytes > 0) {
    const UnsettledEvent* const event = ledger_.ClaimDeadLettering();
    if (event == nullptr) break;
    dead_letters->push_back(GroupLedger::ToDeadLetter(*event));
    --room->events;
    room->bytes -= static_cast<int64_t>(
        event->retained->batch->encoded(event->index).size());
  }
  more = more || (!room->waits && ledger_.HasDeadLettering());
  WakeOthers();
  return more;
}

void ConsumerGroup::EndDeadLetter(uint64_t event_id, DeadLetterOutcome outcome,
                                  int64_t now_us) {
  WakingLock lock(this);
  ledger_.AdvanceTo(now_us);
  ledger_.EndDeadLetter(event_id, outcome);
}

}  // namespace timecache::server

#include "server/engine/groups/consumer_groups.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/base/check.h"
#include "server/base/error.h"
#include "server/base/memory_reclaimer.h"

namespace timecache::server {
namespace {

// A group's name has a namespace's form.
absl::Status ValidateGroupName(absl::string_view name) {
  if (ValidateNamespaceName(name).ok()) return absl::OkStatus();
  return InvalidField("group",
                      "must be 1 to 63 characters of a-z, 0-9, '-' and '.', "
                      "and begin and end with a letter or digit");
}

absl::Status NotFound(absl::string_view name, absl::string_view map) {
  return ErrorWithReason(
      absl::StatusCode::kNotFound, Reason::kGroupNotFound,
      absl::StrCat("namespace ", map, " has no consumer group ", name));
}

// Events' ids are a partition's.
std::string LetterKey(const GroupHost& map, absl::string_view group,
                      uint64_t event_id) {
  const std::string key =
      absl::StrCat(map.namespace_name(), "/", group, "/", event_id);
  return map.partition() == 0 ? key : absl::StrCat(key, "#", map.partition());
}

uint64_t NewGroupId() {
  std::random_device random;
  return std::uniform_int_distribution<uint64_t>(1, kMaxGroupId)(random);
}

absl::string_view ReasonTextOf(const Delivery& delivery) {
  return delivery.reason_text == nullptr ? absl::string_view()
                                         : *delivery.reason_text;
}

DeadLetterOutcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return DeadLetterOutcome::kPut;
  if (absl::IsPermissionDenied(status)) return DeadLetterOutcome::kDenied;
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status)
             ? DeadLetterOutcome::kNeverFits
             : DeadLetterOutcome::kTryAgain;
}

}  // namespace

// --- Groups.

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::Create(
    absl::string_view name, const GroupOptions& options,
    const LogPosition& start, int64_t now_us, absl::string_view created_by) {
  if (absl::Status status = ValidateGroupName(name); !status.ok()) {
    return status;
  }
  if (absl::Status status = Validate(options); !status.ok()) return status;
  absl::MutexLock lock(&change_mu_);
  if (Find(name).ok()) {
    return ErrorWithReason(absl::StatusCode::kAlreadyExists,
                           Reason::kGroupExists,
                           absl::StrCat("namespace ", map_->namespace_name(),
                                        " has a consumer group ", name));
  }
  return Make(name, options, start, now_us, created_by);
}

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::FindOrCreate(
    absl::string_view name, ExpiryLog::Start start, int64_t now_us,
    absl::string_view created_by) {
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> group = Find(name);
  if (group.ok() && (*group)->Use(now_us)) return group;
  absl::MutexLock lock(&change_mu_);
  // Meanwhile another call may have created it, or DeleteUnused deleted it.
  group = Find(name);
  if (group.ok()) (*group)->Use(now_us);
  if (!absl::IsNotFound(group.status())) return group;
  GroupOptions options;
  {
    absl::MutexLock groups_lock(&mu_);
    options.unused_ttl_us = unused_group_ttl_us_;
  }
  return Make(name, options, start, now_us, created_by);
}

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::Make(
    absl::string_view name, const GroupOptions& options,
    const LogPosition& start, int64_t now_us, absl::string_view created_by) {
  if (closed_) {
    return ErrorWithReason(
        absl::StatusCode::kNotFound, Reason::kNamespaceNotFound,
        absl::StrCat("namespace ", map_->namespace_name(), " does not exist"));
  }
  if (List().size() >= kMaxGroups) {
    return ErrorWithReason(
        absl::StatusCode::kResourceExhausted, Reason::kMaxGroups,
        absl::StrCat("namespace ", map_->namespace_name(), " has its ",
                     kMaxGroups, " consumer groups: delete one"));
  }
  if (absl::Status status = MemoryReclaimer::Process().MakeRoom();
      !status.ok()) {
    return status;
  }
  const auto group = NewGroup(name, options, created_by, NewGroupId());
  const absl::Status followed =
      map_->Follow(group.get(), start, now_us, [&](const LogPlace& place) {
        uint64_t first_event = place.first;
        uint64_t inherited = place.first - place.asked;
        if (const std::optional<ExpiredGroup> before = TakeExpired(name)) {
          // Events that it had seen are delivered again only from a time or a
          // point on.
          if (start.kind == LogPosition::Kind::kStart) {
            first_event = std::max(first_event, before->next_event);
          }
          inherited = before->unsettled;
          if (first_event > before->next_event) {
            inherited += first_event - before->next_event;
          }
        }
        group->Start(first_event, inherited, now_us);
      });
  if (!followed.ok()) return followed;
  // Only now: members must not get a watermark before it is known.
  Enter(group);
  map_->Announce(group->NextDueUs());
  return group;
}

std::shared_ptr<ConsumerGroup> ConsumerGroups::NewGroup(
    absl::string_view name, const GroupOptions& options,
    absl::string_view created_by, uint64_t id) {
  auto group = std::make_shared<ConsumerGroup>(
      std::string(name), options,
      ConsumerGroup::Owner{map_->log(), &account_, std::string(created_by), id},
      [map = map_](int64_t due_us) { map->Announce(due_us); });
  absl::MutexLock lock(&mu_);
  group->SetFork(fork_);
  group->SetSink(changes_);
  group->SetDeadLetters(!dead_letter_namespace_.empty());
  return group;
}

void ConsumerGroups::Enter(const std::shared_ptr<ConsumerGroup>& group) {
  absl::MutexLock lock(&mu_);
  // It may have changed.
  group->SetDeadLetters(!dead_letter_namespace_.empty());
  groups_.emplace(group->name(), group);
  account_.AddGroups(1);
}

std::optional<ConsumerGroups::ExpiredGroup> ConsumerGroups::TakeExpired(
    absl::string_view name) {
  absl::MutexLock lock(&mu_);
  const auto it = std::find_if(
      expired_groups_.begin(), expired_groups_.end(),
      [name](const ExpiredGroup& group) { return group.name == name; });
  if (it == expired_groups_.end()) return std::nullopt;
  ExpiredGroup group = std::move(*it);
  expired_groups_.erase(it);
  return group;
}

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::Find(
    absl::string_view name) const {
  {
    absl::MutexLock lock(&mu_);
    const auto it = groups_.find(name);
    if (it != groups_.end()) return it->second;
  }
  if (absl::Status status = ValidateGroupName(name); !status.ok()) {
    return status;
  }
  return NotFound(name, map_->namespace_name());
}

std::vector<std::shared_ptr<ConsumerGroup>> ConsumerGroups::List() const {
  std::vector<std::shared_ptr<ConsumerGroup>> groups;
  absl::MutexLock lock(&mu_);
  groups.reserve(groups_.size());
  for (const auto& [name, group] : groups_) groups.push_back(group);
  return groups;
}

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::Update(
    absl::string_view name,
    const std::function<absl::Status(GroupOptions*)>& change) {
  absl::MutexLock lock(&change_mu_);
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> group = Find(name);
  if (!group.ok()) return group;
  GroupOptions options = (*group)->options();
  if (absl::Status status = change(&options); !status.ok()) return status;
  if (absl::Status status = Validate(options); !status.ok()) return status;
  (*group)->SetOptions(options);
  return group;
}

absl::StatusOr<SeekResult> ConsumerGroups::Seek(absl::string_view name,
                                                const LogPosition& position,
                                                bool drop, int64_t now_us) {
  // Freed behind all locks.
  std::vector<std::shared_ptr<const void>> gone;
  absl::MutexLock lock(&change_mu_);
  const absl::StatusOr<std::shared_ptr<ConsumerGroup>> group = Find(name);
  if (!group.ok()) return group.status();
  SeekResult result;
  const uint64_t id = NewGroupId();
  const absl::Status moved = map_->MoveTo(
      (*group)->key_prefix(), position, now_us,
      [&](const LogPlace& place,
          const std::vector<ExpiryLog::Followed>& retained) {
        result = (*group)->Seek(place, drop, retained, id, now_us, &gone);
      });
  if (!moved.ok()) return moved;
  map_->Announce((*group)->NextDueUs());
  return result;
}

absl::Status ConsumerGroups::Delete(absl::string_view name) {
  absl::MutexLock lock(&change_mu_);
  const absl::StatusOr<std::shared_ptr<ConsumerGroup>> group = Find(name);
  if (!group.ok()) return group.status();
  {
    absl::MutexLock groups_lock(&mu_);
    groups_.erase(name);
    account_.AddGroups(-1);
  }
  map_->log()->Unfollow(group->get());
  (*group)->Close();
  absl::MutexLock groups_lock(&mu_);
  if (changes_ != nullptr) {
    changes_->AddGroup({.kind = GroupChange::Kind::kDeleted, .name = name});
  }
  return absl::OkStatus();
}

void ConsumerGroups::Close() {
  absl::MutexLock lock(&change_mu_);
  closed_ = true;
  for (const auto& group : List()) {
    map_->log()->Unfollow(group.get());
    group->Close();
  }
  absl::MutexLock sink_lock(&sink_mu_);
  sink_ = nullptr;
}

// --- Settling.

absl::Status ConsumerGroups::Settle(absl::string_view group,
                                    absl::Span<const Settlement> settlements,
                                    int64_t now_us,
                                    absl::Span<SettleResult> results) {
  TIMECACHED_CHECK(settlements.size() == results.size());
  const absl::StatusOr<std::shared_ptr<ConsumerGroup>> found = Find(group);
  if (!found.ok()) return found.status();
  for (const Settlement& settlement : settlements) {
    if (settlement.by_operator) (*found)->OpenTo(settlement, now_us);
  }
  for (size_t i = 0; i < settlements.size();) {
    if (settlements[i].action == SettleAction::kPutBack) {
      PutBack(found->get(), settlements[i], now_us, &results[i]);
      ++i;
    } else {
      i += (*found)->Settle(settlements.subspan(i), now_us, results.subspan(i));
    }
  }
  return absl::OkStatus();
}

// The put acquires locks of the map, so it cannot be under the group's.
void ConsumerGroups::PutBack(ConsumerGroup* group, const Settlement& settlement,
                             int64_t now_us, SettleResult* result) {
  result->version = 0;
  // As any put: on a full disk the reserve is for changes that cannot be
  // refused.
  result->status = map_->CheckRoom();
  if (!result->status.ok()) return;
  const absl::StatusOr<Delivery> delivery =
      group->BeginPutBack(settlement, now_us);
  result->status = delivery.status();
  if (!delivery.ok()) return;
  const ExpiredEvent event = delivery->event();
  Operation put = Operation::Put(event.key, event.value);
  put.parts = event.parts;
  put.SetTrace(event.trace);
  put.condition = Condition::kIfAbsent;
  // As any renewal. The namespace's max_ttl may have become less than the own
  // TTL, which no one has asked for now.
  int64_t ttl_us = settlement.ttl_us;
  if (ttl_us == 0) {
    ttl_us = std::min(event.own_ttl_us, max_ttl_us_.load());
  }
  if (ttl_us != 0) put = put.WithTtl(ttl_us);
  put.has_expire_at = settlement.expire_at_us.has_value();
  put.expire_at_us = settlement.expire_at_us.value_or(0);
  put.allow_past = settlement.allow_past;
  Result done;
  map_->Apply(put, now_us, &done);
  result->version = done.version;
  // The key exists again: putting back is unnecessary.
  if (done.status.code() != absl::StatusCode::kFailedPrecondition) {
    result->status = done.status;
  }
  group->EndPutBack(settlement.event_id, result->status.ok(), now_us);
}

// --- Time.

int64_t ConsumerGroups::NextDueUs() const {
  absl::MutexLock lock(&mu_);
  const bool dead_letters = !letters_wait_;
  int64_t due_us = kNeverUs;
  for (const auto& [name, group] : groups_) {
    due_us = std::min(due_us, group->NextDueUs(dead_letters));
  }
  return due_us;
}

bool ConsumerGroups::MayPutDeadLetters() const {
  return letters_ <= kMaxDeadLetters / 2 &&
         letter_bytes_ <= kMaxDeadLetterBytes / 2;
}

DeadLetterBudget ConsumerGroups::RoomForDeadLetters() {
  if (!MayPutDeadLetters()) {
    letters_wait_ = true;
    // The last ones may have been put meanwhile, and not have seen that.
    if (!MayPutDeadLetters()) return {.bytes = 0, .waits = true};
  }
  letters_wait_ = false;
  return {kMaxDeadLetters - letters_, kMaxDeadLetterBytes - letter_bytes_};
}

bool ConsumerGroups::Advance(int64_t now_us) {
  const std::vector<std::shared_ptr<ConsumerGroup>> groups = List();
  if (groups.empty()) return false;
  std::string to_map;
  {
    absl::MutexLock lock(&mu_);
    to_map = dead_letter_namespace_;
  }
  bool more = false;
  DeadLetterBudget room = RoomForDeadLetters();
  for (const auto& group : groups) {
    std::vector<Delivery> dead_letters;
    more = group->Advance(now_us, &room, &dead_letters) || more;
    if (dead_letters.empty()) continue;
    absl::MutexLock lock(&sink_mu_);
    for (const Delivery& delivery : dead_letters) {
      PutDeadLetter(group, delivery, to_map, now_us);
    }
  }
  TrimToBudget(groups);
  DeleteUnused(groups, now_us);
  return more;
}

// The group that keeps most loses first: a group that keeps up loses nothing to
// others that do not.
void ConsumerGroups::TrimToBudget(const Groups& groups) {
  constexpr auto kKind = EventHolder::Kind::kBacklog;
  std::vector<ConsumerGroup*> holders;
  while (const int64_t beyond = account_.BytesBeyondLimit()) {
    if (holders.empty()) {
      for (const auto& group : groups) holders.push_back(group.get());
    }
    const auto largest = std::max_element(
        holders.begin(), holders.end(), [](ConsumerGroup* a, ConsumerGroup* b) {
          return a->Backlog(kKind).bytes < b->Backlog(kKind).bytes;
        });
    if ((*largest)->DropBacklog(kKind, beyond)) continue;
    holders.erase(largest);
    if (holders.empty()) return;
  }
}

void ConsumerGroups::DeleteUnused(const Groups& groups, int64_t now_us) {
  for (const auto& group : groups) {
    if (!group->UnusedForTooLong(now_us)) continue;
    // So that FindOrCreate does not return it meanwhile.
    absl::MutexLock lock(&change_mu_);
    const auto expired = group->CloseIfUnused(now_us);
    if (!expired.has_value()) continue;
    {
      absl::MutexLock groups_lock(&mu_);
      const auto it = groups_.find(group->name());
      TIMECACHED_CHECK(it != groups_.end() && it->second == group);
      groups_.erase(it);
      account_.AddGroups(-1);
      if (expired_groups_.size() == kMaxGroups) expired_groups_.pop_front();
      expired_groups_.push_back(
          {group->name(), expired->unsettled, expired->next_event});
      ++expired_;
      AppendExpired(expired_groups_.back());
    }
    map_->log()->Unfollow(group.get());
  }
}

void ConsumerGroups::AppendExpired(const ExpiredGroup& group) {
  if (changes_ == nullptr) return;
  changes_->AddGroup({.kind = GroupChange::Kind::kExpired,
                      .name = group.name,
                      .end = group.next_event,
                      .unreported = group.unsettled});
}

uint64_t ConsumerGroups::expired() const {
  absl::MutexLock lock(&mu_);
  return expired_;
}

std::vector<ConsumerGroups::ExpiredGroup> ConsumerGroups::LastExpired(
    size_t most) const {
  absl::MutexLock lock(&mu_);
  const size_t count = std::min(most, expired_groups_.size());
  return {expired_groups_.end() - static_cast<ptrdiff_t>(count),
          expired_groups_.end()};
}

void ConsumerGroups::PutDeadLetter(const std::shared_ptr<ConsumerGroup>& group,
                                   const Delivery& delivery,
                                   const std::string& to_map, int64_t now_us) {
  std::string key = LetterKey(*map_, group->name(), delivery.event_id);
  std::string value = delivery.batch->EncodeDeadLetter(
      delivery.index,
      {group->name(), delivery.event_id, delivery.attempt, delivery.returns,
       delivery.reason, now_us, ReasonTextOf(delivery)});
  const auto bytes = static_cast<int64_t>(key.size() + value.size());
  ++letters_;
  letter_bytes_ += bytes;
  // The map is there until this is gone, and this with it.
  auto done = [this, group, id = delivery.event_id, bytes,
               now_us](const absl::Status& put) {
    EndDeadLetter(group.get(), id, put, bytes, now_us);
  };
  if (!sink_ || to_map.empty()) {
    return done(absl::UnavailableError("no place for dead letters"));
  }
  sink_({to_map, group->created_by(), std::move(key), std::move(value)},
        std::move(done));
}

void ConsumerGroups::EndDeadLetter(ConsumerGroup* group, uint64_t event_id,
                                   const absl::Status& put, int64_t bytes,
                                   int64_t now_us) {
  group->EndDeadLetter(event_id, OutcomeOf(put), now_us);
  --letters_;
  letter_bytes_ -= bytes;
  if (letters_wait_ && MayPutDeadLetters() && letters_wait_.exchange(false)) {
    map_->Announce(now_us);
  }
}

void ConsumerGroups::SetOptions(const NamespaceOptions& options) {
  account_.SetLimit(BacklogLimitBytes(options));
  account_.SetPartitions(options.num_partitions);
  max_ttl_us_ = options.max_ttl_us;
  absl::MutexLock lock(&mu_);
  unused_group_ttl_us_ = options.unused_group_ttl_us;
  dead_letter_namespace_ = options.dead_letter_namespace;
  for (const auto& [name, group] : groups_) {
    group->SetDeadLetters(!dead_letter_namespace_.empty());
  }
}

void ConsumerGroups::SetFork(uint64_t fork) {
  absl::MutexLock lock(&mu_);
  fork_ = fork;
  for (const auto& [name, group] : groups_) group->SetFork(fork);
}

void ConsumerGroups::SetDeadLetterSink(DeadLetterSink sink) {
  absl::MutexLock lock(&sink_mu_);
  sink_ = std::move(sink);
}

// --- Changes.

void ConsumerGroups::SetSink(GroupChangeSink* sink) {
  absl::MutexLock lock(&mu_);
  changes_ = sink;
  for (const auto& [name, group] : groups_) group->SetSink(sink);
}

bool ConsumerGroups::AppendAgain(int max_events, int64_t max_bytes,
                                 WalkPosition* position) {
  if (!position->begun) {
    position->begun = true;
    absl::MutexLock lock(&mu_);
    for (const ExpiredGroup& group : expired_groups_) AppendExpired(group);
  }
  while (max_events > 0 && max_bytes > 0) {
    std::shared_ptr<ConsumerGroup> group;
    {
      absl::MutexLock lock(&mu_);
      const auto next = position->event > 0
                            ? groups_.lower_bound(position->group)
                            : groups_.upper_bound(position->group);
      if (next == groups_.end()) return false;
      if (next->first != position->group) position->event = 0;
      position->group = next->first;
      group = next->second;
    }
    if (!group->AppendAgain(&position->event, &max_events, &max_bytes)) {
      position->event = 0;
    }
  }
  return true;
}

void ConsumerGroups::Restore(const GroupState& state, int64_t now_us) {
  absl::MutexLock lock(&change_mu_);
  const auto group =
      NewGroup(state.name, state.options, state.created_by, state.id);
  group->Restore(state, now_us);
  map_->log()->Follow(group.get(), ExpiryLog::Start::kNow, 0);
  Enter(group);
}

void ConsumerGroups::RestoreExpired(std::deque<ExpiredGroup> expired) {
  absl::MutexLock lock(&mu_);
  expired_groups_ = std::move(expired);
}

}  // namespace timecache::server

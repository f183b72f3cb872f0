#include "server/engine/consumer_groups.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/check.h"
#include "server/engine/error.h"
#include "server/engine/memory_reclaimer.h"
#include "server/engine/time_cache_map.h"

namespace timecache {
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
      absl::StatusCode::kNotFound, "GROUP_NOT_FOUND",
      absl::StrCat("namespace ", map, " has no consumer group ", name));
}

DeadLetterOutcome OutcomeOf(const absl::Status& status) {
  if (status.ok()) return DeadLetterOutcome::kPut;
  return absl::IsInvalidArgument(status) || absl::IsOutOfRange(status)
             ? DeadLetterOutcome::kNeverFits
             : DeadLetterOutcome::kTryAgain;
}

}  // namespace

// --- Groups.

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::Create(
    absl::string_view name, const GroupOptions& options, ExpiryLog::Start start,
    int64_t now_us) {
  if (absl::Status status = ValidateGroupName(name); !status.ok())
    return status;
  if (absl::Status status = Validate(options); !status.ok()) return status;
  absl::MutexLock lock(&change_mu_);
  if (Find(name).ok()) {
    return ErrorWithReason(absl::StatusCode::kAlreadyExists, "GROUP_EXISTS",
                           absl::StrCat("namespace ", map_->name(),
                                        " has a consumer group ", name));
  }
  return Make(name, options, start, now_us);
}

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::FindOrCreate(
    absl::string_view name, ExpiryLog::Start start, int64_t now_us) {
  absl::StatusOr<std::shared_ptr<ConsumerGroup>> group = Find(name);
  if (!absl::IsNotFound(group.status())) return group;
  absl::MutexLock lock(&change_mu_);
  // Somebody else may have made it meanwhile.
  group = Find(name);
  if (!absl::IsNotFound(group.status())) return group;
  return Make(name, GroupOptions(), start, now_us);
}

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::Make(
    absl::string_view name, const GroupOptions& options, ExpiryLog::Start start,
    int64_t now_us) {
  if (closed_) {
    return ErrorWithReason(
        absl::StatusCode::kNotFound, "NAMESPACE_NOT_FOUND",
        absl::StrCat("namespace ", map_->name(), " does not exist"));
  }
  if (List().size() >= kMaxGroups) {
    return ErrorWithReason(
        absl::StatusCode::kResourceExhausted, "MAX_GROUPS",
        absl::StrCat("namespace ", map_->name(), " has its ", kMaxGroups,
                     " consumer groups: delete one"));
  }
  if (absl::Status status = MemoryReclaimer::Process().MakeRoom(); !status.ok())
    return status;
  auto group = std::make_shared<ConsumerGroup>(
      std::string(name), options, &map_->log_,
      [map = map_](int64_t due_us) { map->Announce(due_us); });
  group->Start(map_->Follow(group.get(), start, now_us), now_us);
  // Only now: a member must not be told how far it is complete before that is
  // known.
  absl::MutexLock lock(&mu_);
  group->SetDeadLetters(!dead_letter_map_.empty());
  groups_.emplace(name, group);
  return group;
}

absl::StatusOr<std::shared_ptr<ConsumerGroup>> ConsumerGroups::Find(
    absl::string_view name) const {
  {
    absl::MutexLock lock(&mu_);
    const auto it = groups_.find(name);
    if (it != groups_.end()) return it->second;
  }
  if (absl::Status status = ValidateGroupName(name); !status.ok())
    return status;
  return NotFound(name, map_->name());
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

absl::Status ConsumerGroups::Delete(absl::string_view name) {
  absl::MutexLock lock(&change_mu_);
  const absl::StatusOr<std::shared_ptr<ConsumerGroup>> group = Find(name);
  if (!group.ok()) return group.status();
  {
    absl::MutexLock groups_lock(&mu_);
    groups_.erase(name);
  }
  map_->log_.Unfollow(group->get());
  (*group)->Close();
  return absl::OkStatus();
}

void ConsumerGroups::Close() {
  absl::MutexLock lock(&change_mu_);
  closed_ = true;
  for (const auto& group : List()) {
    map_->log_.Unfollow(group.get());
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

// The put takes locks of the map, so it cannot be under the group's.
void ConsumerGroups::PutBack(ConsumerGroup* group, const Settlement& settlement,
                             int64_t now_us, SettleResult* result) {
  result->version = 0;
  const absl::StatusOr<Delivery> delivery =
      group->BeginPutBack(settlement, now_us);
  result->status = delivery.status();
  if (!delivery.ok()) return;
  const ExpiredEvent event = delivery->event();
  Operation put = Operation::Put(event.key, event.value);
  put.condition = Condition::kIfAbsent;
  if (settlement.ttl_us != 0) put = put.WithTtl(settlement.ttl_us);
  const Result done = map_->Apply(put, now_us);
  result->version = done.version;
  // The key is there again: what it was put back for has happened.
  if (done.status.code() != absl::StatusCode::kFailedPrecondition) {
    result->status = done.status;
  }
  group->EndPutBack(settlement.event_id, result->status.ok(), now_us);
}

// --- Time.

int64_t ConsumerGroups::NextDueUs() const {
  absl::MutexLock lock(&mu_);
  int64_t due_us = kNeverUs;
  for (const auto& [name, group] : groups_) {
    due_us = std::min(due_us, group->NextDueUs());
  }
  return due_us;
}

bool ConsumerGroups::Advance(int64_t now_us) {
  const std::vector<std::shared_ptr<ConsumerGroup>> groups = List();
  if (groups.empty()) return false;
  std::string to_map;
  {
    absl::MutexLock lock(&mu_);
    to_map = dead_letter_map_;
  }
  bool more = false;
  DoomedRoom room = {kMaxDeadLetters, kMaxDeadLetterBytes};
  for (const auto& group : groups) {
    std::vector<Delivery> doomed;
    more = group->Advance(now_us, &room, &doomed) || more;
    if (doomed.empty()) continue;
    absl::MutexLock lock(&sink_mu_);
    for (const Delivery& delivery : doomed) {
      PutDeadLetter(group.get(), delivery, to_map, now_us);
    }
  }
  return more;
}

void ConsumerGroups::PutDeadLetter(ConsumerGroup* group,
                                   const Delivery& delivery,
                                   const std::string& to_map, int64_t now_us) {
  absl::Status status = absl::UnavailableError("no place for dead letters");
  if (sink_ && !to_map.empty()) {
    status = sink_(
        to_map,
        absl::StrCat(map_->name(), "/", group->name(), "/", delivery.event_id),
        delivery.batch->EncodeDelivery(delivery.index, delivery.event_id,
                                       delivery.attempt));
  }
  group->EndDeadLetter(delivery.event_id, OutcomeOf(status), now_us);
}

void ConsumerGroups::SetDeadLetterMap(absl::string_view name) {
  absl::MutexLock lock(&mu_);
  dead_letter_map_ = std::string(name);
  for (const auto& [group_name, group] : groups_) {
    group->SetDeadLetters(!name.empty());
  }
}

void ConsumerGroups::SetDeadLetterSink(DeadLetterSink sink) {
  absl::MutexLock lock(&sink_mu_);
  sink_ = std::move(sink);
}

}  // namespace timecache

// What a GroupWorker does with its events' settlements, and with what the server
// answers to them.
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/src/events/group_worker_state.h"
#include "timecache/status.h"

namespace timecache {
absl::Status GroupWorker::State::About(const absl::Status& status,
                                       absl::string_view what) {
  absl::Status about(status.code(), absl::StrCat(what, ": ", status.message()));
  status.ForEachPayload(
      [&about](absl::string_view url, const absl::Cord& cord) {
        about.SetPayload(url, cord);
      });
  return about;
}

std::string GroupWorker::State::EventText(absl::string_view key,
                                          uint64_t event_id, uint32_t attempt) {
  return absl::StrCat("key \"", absl::Utf8SafeCEscape(key), "\", event ",
                      event_id, ", attempt ", attempt);
}

// Reports what the handler wanted in vain.
bool GroupWorker::State::IsDue(const Owed& owed) {
  const bool is_extend = owed.settlement.how.action == SettleAction::kExtend;
  {
    absl::MutexLock lock(&mu_);
    Task* const task = Find(owed.settlement.event_id, owed.task);
    if (task != nullptr && !(is_extend && task->settling)) return true;
    if (task != nullptr) task->extending = false;
    if (is_extend) return false;
    ++counters_.stale;
  }
  Report(absl::NotFoundError(
      absl::StrCat("event ", owed.settlement.event_id,
                   " has been handled, but is not settled: its log is gone")));
  return false;
}

// The server's answer; returns what to settle in its place, if anything.
std::optional<Owed> GroupWorker::State::Settled(const Owed& owed,
                                                const absl::Status& status) {
  const SettleAction action = owed.settlement.how.action;
  if (action == SettleAction::kExtend) {
    Extended(owed, status);
    return std::nullopt;
  }
  const bool is_stale = HasReason(status, ErrorReason::kStaleAttempt);
  if (action != SettleAction::kNack &&
      (is_stale || absl::IsInvalidArgument(status))) {
    // Perhaps it was delivered to this worker again; by a restarted server with
    // the same attempt, because the interrupted one does not count. A new group
    // counts attempts from the start.
    absl::MutexLock lock(&mu_);
    Task* const task = Find(owed.settlement.event_id, owed.task);
    if (task != nullptr && std::exchange(task->again, false)) {
      Owed instead = owed;
      instead.settlement.attempt = task->attempt;
      instead.settlement.returns = task->returns;
      return instead;
    }
  }
  if (!status.ok() && !is_stale &&
      !HasReason(status, ErrorReason::kEventNotUnsettled)) {
    return Refused(owed, status);
  }
  if (!status.ok()) ReportUnsettled(owed, status);
  absl::MutexLock lock(&mu_);
  Forget(owed.settlement.event_id, owed.task);
  if (!status.ok()) {
    ++counters_.stale;
  } else if (action == SettleAction::kAck) {
    ++counters_.acked;
  } else if (action == SettleAction::kNack) {
    ++counters_.nacked;
  } else {
    ++counters_.put_back;
  }
  return std::nullopt;
}

// The server refused the settlement, or has no room for the entry that is put
// back: then it is retried later.
std::optional<Owed> GroupWorker::State::Refused(const Owed& owed,
                                                const absl::Status& status) {
  ReportUnsettled(owed, status);
  const Settle retry = Settle::Nack(options_.retry_delay);
  const Settle& how = owed.settlement.how;
  const bool was_retry =
      how.action == SettleAction::kNack && how.delay == retry.delay;
  if (was_retry || how.action == SettleAction::kAck) {
    Dropped(owed);
    return std::nullopt;
  }
  absl::MutexLock lock(&mu_);
  Task* const task = Find(owed.settlement.event_id, owed.task);
  if (task == nullptr) {
    ++counters_.stale;
    return std::nullopt;
  }
  task->nacked = true;
  Owed instead = owed;
  instead.settlement.how = retry;
  return instead;
}

void GroupWorker::State::Dropped(const Owed& owed) {
  absl::MutexLock lock(&mu_);
  if (owed.settlement.how.action == SettleAction::kExtend) {
    Task* const task = Find(owed.settlement.event_id, owed.task);
    if (task != nullptr) task->extending = false;
    return;
  }
  ++counters_.unsettled;
  Forget(owed.settlement.event_id, owed.task);
}

// Null once the id belongs to another event, or to none.
GroupWorker::State::Task* GroupWorker::State::Find(uint64_t event_id,
                                                   uint64_t number) {
  const auto it = tasks_.find(event_id);
  if (it == tasks_.end() || it->second.number != number) return nullptr;
  return &it->second;
}

// From here on the event is handled when it is delivered again.
void GroupWorker::State::Forget(uint64_t event_id, uint64_t number) {
  if (Find(event_id, number) != nullptr) tasks_.erase(event_id);
}

// Before the task is forgotten.
void GroupWorker::State::ReportUnsettled(const Owed& owed,
                                         const absl::Status& status) {
  std::string event = absl::StrCat("event ", owed.settlement.event_id);
  {
    absl::MutexLock lock(&mu_);
    const Task* const task = Find(owed.settlement.event_id, owed.task);
    if (task != nullptr) event = task->Text(owed.settlement.event_id);
  }
  Report(About(status,
               absl::StrCat(event, " has been handled, but is not settled")));
}

}  // namespace timecache

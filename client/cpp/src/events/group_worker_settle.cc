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

std::string GroupWorker::State::EventText(const ExpiredEvent& event) {
  return absl::StrCat("key \"", absl::Utf8SafeCEscape(event.key), "\", event ",
                      event.event_id, ", attempt ", event.attempt);
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
  if (is_stale && action != SettleAction::kNack) {
    // Perhaps it was delivered to this worker again: no other one settles it.
    absl::MutexLock lock(&mu_);
    const std::string& newest = owed.held->event.delivery_token;
    if (newest != owed.settlement.delivery_token) {
      Owed instead = owed;
      instead.settlement.delivery_token = newest;
      return instead;
    }
  }
  if (!status.ok() && !is_stale &&
      !HasReason(status, ErrorReason::kEventNotUnsettled)) {
    return Refused(owed, status);
  }
  if (!status.ok()) ReportUnsettled(owed, status);
  absl::MutexLock lock(&mu_);
  Forget(*owed.held);
  if (!status.ok()) {
    ++counters_.stale;
  } else if (action == SettleAction::kAck) {
    ++counters_.acked;
  } else if (action == SettleAction::kNack) {
    ++counters_.nacked;
  } else if (action == SettleAction::kPutBack) {
    ++counters_.put_back;
  } else {
    ++counters_.terminated;
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
  owed.held->nacked = true;
  return Owed{{owed.held->event.delivery_token, retry}, owed.held};
}

void GroupWorker::State::Dropped(const Owed& owed) {
  absl::MutexLock lock(&mu_);
  if (owed.settlement.how.action == SettleAction::kExtend) {
    owed.held->extending = false;
    return;
  }
  ++counters_.unsettled;
  Forget(*owed.held);
}

// From here on the event is handled when it is delivered again. It may have
// been, after a kNack.
void GroupWorker::State::Forget(const HeldEvent& held) {
  const auto it = held_.find(NameOf(held.event));
  if (it != held_.end() && it->second.get() == &held) held_.erase(it);
}

void GroupWorker::State::ReportUnsettled(const Owed& owed,
                                         const absl::Status& status) {
  std::string event;
  {
    absl::MutexLock lock(&mu_);
    event = EventText(owed.held->event);
  }
  Report(About(status,
               absl::StrCat(event, " has been handled, but is not settled")));
}

}  // namespace timecache

// How a GroupWorker keeps the events that it holds: by kExtends, each third of
// the group's ack_timeout.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cpp/src/events/group_worker_state.h"
#include "timecache/status.h"

namespace timecache {
namespace {

// An event has to be late by two of these before it times out.
constexpr int kIntervalsOfAckTimeout = 3;
constexpr absl::Duration kMinInterval = absl::Milliseconds(2);
// While the group's options cannot be read.
constexpr absl::Duration kMaxUnknownInterval = absl::Seconds(1);
// Longest duration of one attempt to read them, and how often they are read.
constexpr absl::Duration kReadTimeout = absl::Seconds(1);
constexpr absl::Duration kMinReadInterval = absl::Seconds(1);

}  // namespace

// Reads the group's options at most once a second, so that a change of the
// ack_timeout takes effect after a third of the former one.
void GroupWorker::State::Extend() {
  const auto is_woken = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return has_left_ || !held_.empty();
  };
  absl::Duration interval = kMaxUnknownInterval;
  SteadyTime read_next_at = SteadyTime::min();
  while (true) {
    {
      absl::MutexLock lock(&mu_, absl::Condition(&is_woken));
      if (has_left_) return;
    }
    if (SteadyNow() >= read_next_at) {
      const absl::StatusOr<Group> group =
          client_.GetGroup(options_.group, {},
                           {.timeout = kReadTimeout,
                            .cancellation = stop_extending_.get_token()});
      if (group.ok()) {
        interval =
            std::max(group->options.ack_timeout.value_or(absl::ZeroDuration()) /
                         kIntervalsOfAckTimeout,
                     kMinInterval);
        read_next_at = SteadyAfter(std::max(interval, kMinReadInterval));
      } else {
        interval = std::min(interval, kMaxUnknownInterval);
      }
    }
    const SteadyTime until = SteadyAfter(interval);
    {
      absl::MutexLock lock(&mu_);
      while (!has_left_ && SteadyNow() < until) left_.WaitUntil(&mu_, until);
      if (has_left_) return;
    }
    // Quick handlers are done before they would be extended.
    ExtendAll(SteadyAfter(-interval / 2));
  }
}

// Extends what is held since then, and waits for a handler or is with one.
void GroupWorker::State::ExtendAll(SteadyTime since) {
  std::vector<absl::Status> given_up;
  {
    const SteadyTime now = SteadyNow();
    absl::MutexLock lock(&mu_);
    for (const auto& [name, held] : held_) {
      if (held->settling || held->extending || held->given_up ||
          held->arrived_at > since) {
        continue;
      }
      if (SteadyAfter(options_.extend_max, held->arrived_at) < now) {
        held->given_up = true;
        given_up.push_back(absl::AbortedError(absl::StrCat(
            EventText(held->event), " has not been handled within ",
            absl::FormatDuration(options_.extend_max),
            " (extend_max), and goes to another worker")));
        continue;
      }
      held->extending = settler_.TryAdd(
          {{held->event.delivery_token, Settle::Extend()}, held});
    }
  }
  settler_.Hurry();
  for (const absl::Status& why : given_up) Report(why);
}

void GroupWorker::State::Extended(const Owed& owed,
                                  const absl::Status& status) {
  const bool is_lost = HasReason(status, ErrorReason::kStaleAttempt) ||
                       HasReason(status, ErrorReason::kEventNotUnsettled);
  absl::Status why;
  {
    absl::MutexLock lock(&mu_);
    status.ok() ? ++counters_.extended : ++counters_.not_extended;
    HeldEvent& held = *owed.held;
    held.extending = false;
    const bool is_newest =
        held.event.delivery_token == owed.settlement.delivery_token;
    if (status.ok() || !is_newest) return;
    held.given_up = true;
    // Where it is lost, its settlement will fail, which is then reported.
    if (is_lost || held.settling) return;
    why = About(status,
                absl::StrCat(EventText(held.event), " cannot be extended"));
  }
  Report(why);
}

}  // namespace timecache

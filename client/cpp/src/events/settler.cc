#include "client/cpp/src/events/settler.h"

#include <algorithm>
#include <utility>

#include "client/cpp/src/rpc/backoff.h"
#include "client/cpp/src/rpc/call.h"
#include "timecache/status.h"

namespace timecache {

Settler::Settler(const Client& client, SettlerOptions options,
                 Callbacks callbacks)
    : client_(client),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      thread_([this] { Run(); }) {}

Settler::~Settler() {
  Finish(absl::ZeroDuration()).IgnoreError();
  thread_.join();
}

void Settler::Add(const Owed& owed) {
  absl::MutexLock lock(&mu_);
  while (pending_.size() >= options_.pending_max) changed_.Wait(&mu_);
  Append(owed);
}

bool Settler::TryAdd(const Owed& owed) {
  absl::MutexLock lock(&mu_);
  if (finishing_ || pending_.size() >= options_.pending_max) return false;
  Append(owed);
  return true;
}

void Settler::Append(const Owed& owed) {
  if (pending_.empty()) due_at_ = SteadyAfter(options_.linger);
  pending_.push_back(owed);
  changed_.SignalAll();
}

void Settler::Hurry() {
  absl::MutexLock lock(&mu_);
  hurry_ = !pending_.empty();
  changed_.SignalAll();
}

absl::Status Settler::Finish(absl::Duration timeout) {
  const SteadyTime give_up_at = SteadyAfter(timeout);
  absl::MutexLock lock(&mu_);
  finishing_ = true;
  changed_.SignalAll();
  while (!finished_ && SteadyNow() < give_up_at) {
    changed_.WaitUntil(&mu_, give_up_at);
  }
  if (!finished_) {
    giving_up_ = true;
    changed_.SignalAll();
  }
  while (!finished_) changed_.Wait(&mu_);
  return given_up_;
}

void Settler::Run() {
  while (true) {
    const std::vector<Owed> batch = Next();
    if (batch.empty()) break;
    Send(batch);
  }
  absl::MutexLock lock(&mu_);
  finished_ = true;
  changed_.SignalAll();
}

// None: no more will follow.
std::vector<Owed> Settler::Next() {
  absl::MutexLock lock(&mu_);
  while (!finishing_ && pending_.empty()) changed_.Wait(&mu_);
  while (!finishing_ && !hurry_ && pending_.size() < options_.batch_max &&
         SteadyNow() < due_at_) {
    changed_.WaitUntil(&mu_, due_at_);
  }
  const size_t size = std::min(pending_.size(), options_.batch_max);
  const auto end = pending_.begin() + static_cast<ptrdiff_t>(size);
  std::vector<Owed> batch(pending_.begin(), end);
  pending_.erase(pending_.begin(), end);
  // The rest has waited already.
  hurry_ = !pending_.empty();
  changed_.SignalAll();
  return batch;
}

void Settler::Send(const std::vector<Owed>& batch) {
  Backoff backoff(options_.min_pause, options_.max_pause);
  std::vector<Settlement> settlements;
  settlements.reserve(batch.size());
  for (const Owed& owed : batch) settlements.push_back(owed.settlement);
  for (bool is_repeated = false;; is_repeated = true) {
    // They are a batch already.
    const auto results =
        client_.Settle(options_.group, settlements, {.batching = false});
    if (results.ok()) return Report(batch, *results, is_repeated);
    const absl::Status& why = results.status();
    callbacks_.on_error(why);
    const bool may_pass = IsConnectionLost(why) ||
                          absl::IsDeadlineExceeded(why) ||
                          absl::IsResourceExhausted(why);
    if (may_pass && Pause(backoff.Next())) continue;
    for (const Owed& owed : batch) callbacks_.on_dropped(owed);
    absl::MutexLock lock(&mu_);
    if (giving_up_) given_up_ = why;
    return;
  }
}

void Settler::Report(const std::vector<Owed>& batch,
                     const std::vector<SettleResult>& results,
                     bool is_repeated) {
  std::vector<Owed> instead;
  for (size_t i = 0; i < batch.size(); ++i) {
    absl::Status status = results[i].status;
    // An unanswered attempt may have settled it.
    if (is_repeated && HasReason(status, ErrorReason::kEventNotUnsettled)) {
      status = absl::OkStatus();
    }
    const auto other = callbacks_.on_result(batch[i], status);
    if (other) instead.push_back(*other);
  }
  if (instead.empty()) return;
  absl::MutexLock lock(&mu_);
  pending_.insert(pending_.begin(), instead.begin(), instead.end());
  hurry_ = true;
}

// False if there is no time left for another attempt.
bool Settler::Pause(absl::Duration pause) {
  const SteadyTime until = SteadyAfter(pause);
  absl::MutexLock lock(&mu_);
  while (!giving_up_ && SteadyNow() < until) changed_.WaitUntil(&mu_, until);
  return !giving_up_;
}

}  // namespace timecache

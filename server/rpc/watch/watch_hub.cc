#include "server/rpc/watch/watch_hub.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/base/error.h"
#include "server/edge/response/open_streams.h"

namespace timecache::server {

namespace {

double PerSecond(const WatchHub::Needs& needs) {
  return static_cast<double>(needs.heartbeats) * kMicrosPerSecond /
         static_cast<double>(needs.heartbeat_us);
}

}  // namespace

WatchHub::WatchHub(const Clock* clock, int64_t max_watchers)
    : clock_(clock), max_watchers_(max_watchers), thread_([this] { Run(); }) {}

WatchHub::~WatchHub() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

absl::Status WatchHub::Add(std::shared_ptr<Watcher> watcher, Needs needs) {
  absl::MutexLock lock(&mu_);
  if (draining_) return OpenStreams::DrainingError();
  if (needs.waits && waiting_ >= max_watchers_) {
    return ErrorWithReason(
        absl::StatusCode::kResourceExhausted, Reason::kMaxWatchers,
        absl::StrCat("the server is at its limits.max_watchers of ",
                     max_watchers_));
  }
  heartbeats_ += PerSecond(needs);
  if (needs.waits) ++waiting_;
  Watcher* const key = watcher.get();
  State state;
  state.needs = std::move(needs);
  watchers_.emplace(key, std::make_pair(std::move(watcher), std::move(state)));
  return absl::OkStatus();
}

void WatchHub::Remove(const std::shared_ptr<Watcher>& watcher) {
  absl::MutexLock lock(&mu_);
  const auto it = watchers_.find(watcher.get());
  if (it == watchers_.end()) return;
  timers_.erase({it->second.second.timer_us, watcher.get()});
  heartbeats_ -= PerSecond(it->second.second.needs);
  if (it->second.second.needs.waits) --waiting_;
  // A queue entry that is left finds no watcher.
  watchers_.erase(it);
  removed_.Signal();
}

int64_t WatchHub::HeartbeatUs(const Needs& needs) const {
  absl::MutexLock lock(&mu_);
  if (heartbeats_ <= kMaxHeartbeatsPerSecond) return needs.heartbeat_us;
  return std::max(
      needs.heartbeat_us,
      needs.heartbeats * waiting_ * kMicrosPerSecond / kMaxHeartbeatsPerSecond);
}

void WatchHub::Notify(const std::shared_ptr<Watcher>& watcher) {
  absl::MutexLock lock(&mu_);
  Queue(watcher.get(), Watcher::Wake::kReady);
}

void WatchHub::SetTimer(const std::shared_ptr<Watcher>& watcher,
                        int64_t due_us) {
  absl::MutexLock lock(&mu_);
  const auto it = watchers_.find(watcher.get());
  if (it == watchers_.end()) return;
  State& state = it->second.second;
  const int64_t first_us = timers_.empty() ? kNeverUs : timers_.begin()->first;
  timers_.erase({state.timer_us, watcher.get()});
  state.timer_us = due_us;
  timers_.insert({due_us, watcher.get()});
  if (due_us < first_us) wake_.Signal();
}

void WatchHub::HeartbeatAll() {
  absl::MutexLock lock(&mu_);
  QueueAll(Watcher::Wake::kHeartbeat);
}

size_t WatchHub::Drain() {
  absl::MutexLock lock(&mu_);
  draining_ = true;
  QueueAll(Watcher::Wake::kDrain);
  return watchers_.size();
}

size_t WatchHub::WaitForNone(std::chrono::steady_clock::time_point deadline) {
  absl::MutexLock lock(&mu_);
  while (!watchers_.empty() && std::chrono::steady_clock::now() < deadline) {
    removed_.WaitUntil(&mu_, deadline);
  }
  return watchers_.size();
}

int64_t WatchHub::size() const {
  absl::MutexLock lock(&mu_);
  return waiting_;
}

int64_t WatchHub::max() const {
  absl::MutexLock lock(&mu_);
  return max_watchers_;
}

void WatchHub::SetMax(int64_t max_watchers) {
  absl::MutexLock lock(&mu_);
  max_watchers_ = max_watchers;
}

void WatchHub::Queue(Watcher* watcher, Watcher::Wake why) {
  const auto it = watchers_.find(watcher);
  if (it == watchers_.end()) return;
  State& state = it->second.second;
  // The stronger reason stays: a drain sends the watermark, and both read
  // events.
  state.why = state.queued ? std::max(state.why, why) : why;
  if (state.queued) return;
  state.queued = true;
  queue_.Push(state.needs.flow, watcher);
  if (queue_.size() == 1) wake_.Signal();
}

void WatchHub::QueueAll(Watcher::Wake why) {
  for (const auto& [watcher, state] : watchers_) Queue(watcher, why);
}

void WatchHub::QueueDue(int64_t now_us) {
  while (!timers_.empty() && timers_.begin()->first <= now_us) {
    Watcher* const watcher = timers_.begin()->second;
    timers_.erase(timers_.begin());
    watchers_.at(watcher).second.timer_us = kNeverUs;
    Queue(watcher, Watcher::Wake::kReady);
  }
}

void WatchHub::Run() {
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    QueueDue(clock_->NowUs());
    if (queue_.empty()) {
      clock_->WaitUntil(timers_.empty() ? kNeverUs : timers_.begin()->first,
                        &mu_, &wake_);
      continue;
    }
    const auto it = watchers_.find(queue_.Pop());
    if (it == watchers_.end()) continue;
    it->second.second.queued = false;
    const Watcher::Wake why = it->second.second.why;
    // Kept alive while it runs, even if it removes itself.
    std::shared_ptr<Watcher> watcher = it->second.first;
    mu_.Unlock();
    if (watcher->OnWake(why)) Notify(watcher);
    watcher.reset();
    mu_.Lock();
  }
}

}  // namespace timecache::server

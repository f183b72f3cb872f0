#include "server/engine/reaper.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "server/base/block_pool.h"
#include "server/base/memory_reclaimer.h"

namespace timecache::server {

Reaper::Reaper(const Clock* clock, SlowSweep slow_sweep)
    : clock_(clock),
      slow_sweep_(std::move(slow_sweep)),
      thread_([this] { Run(); }) {}

Reaper::~Reaper() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.Signal();
    flushed_.SignalAll();
  }
  thread_.join();
}

void Reaper::Add(std::shared_ptr<TimeCacheMap> map) {
  const TimeCacheMap* const key = map.get();
  map->SetSchedule([this, key](int64_t due_us) { Schedule(key, due_us); });
  const int64_t due_us = map->NextDueUs(clock_->NowUs());
  absl::MutexLock lock(&mu_);
  Driven& driven = driven_[key];
  driven.map = std::move(map);
  SetDue(&driven, due_us);
  wake_.Signal();
}

void Reaper::Remove(const TimeCacheMap* map) {
  absl::MutexLock lock(&mu_);
  const auto it = driven_.find(map);
  if (it == driven_.end()) return;
  schedule_.erase({it->second.due_us, map});
  driven_.erase(it);
}

void Reaper::Schedule(const TimeCacheMap* map, int64_t due_us) {
  absl::MutexLock lock(&mu_);
  const auto it = driven_.find(map);
  if (it == driven_.end() || it->second.due_us <= due_us) return;
  const bool earliest = schedule_.empty() || due_us < schedule_.begin()->first;
  SetDue(&it->second, due_us);
  if (earliest) wake_.Signal();
}

void Reaper::SetDue(Driven* driven, int64_t due_us) {
  const TimeCacheMap* const map = driven->map.get();
  schedule_.erase({driven->due_us, map});
  driven->due_us = due_us;
  if (due_us != kNeverUs) schedule_.insert({due_us, map});
}

void Reaper::CollectDue(int64_t now_us) {
  if (flush_begun_ != flush_asked_) {
    flush_begun_ = flush_asked_;
    for (auto& [map, driven] : driven_) SetDue(&driven, INT64_MIN);
  }
  while (!schedule_.empty() && schedule_.begin()->first <= now_us) {
    Driven& driven = driven_.at(schedule_.begin()->second);
    SetDue(&driven, kNeverUs);
    if (std::exchange(driven.busy, true)) continue;
    busy_.push_back(driven.map);
  }
}

void Reaper::Run() {
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    CollectDue(clock_->NowUs());
    if (!busy_.empty()) {
      const std::shared_ptr<TimeCacheMap> map = std::move(busy_.front());
      busy_.pop_front();
      mu_.Unlock();
      const bool in_time = Turn(map.get());
      mu_.Lock();
      if (in_time) Pause();
    } else if (flush_done_ != flush_begun_ && AwaitsPermit()) {
      wake_.WaitFor(&mu_, std::chrono::microseconds(kPermitPollUs));
    } else if (flush_done_ != flush_begun_) {
      flush_done_ = flush_begun_;
      flushed_.SignalAll();
    } else if (clock_->NowUs() >= give_back_us_) {
      mu_.Unlock();
      const bool reclaimed = MemoryReclaimer::Process().Step();
      const bool more = BlockPool::Default().GiveBack() || reclaimed;
      mu_.Lock();
      give_back_us_ =
          clock_->NowUs() + (more ? kGiveBackPeriodUs : kIdleMemoryPeriodUs);
    } else {
      const int64_t due_us =
          schedule_.empty() ? kNeverUs : schedule_.begin()->first;
      clock_->WaitUntil(std::min(due_us, give_back_us_), &mu_, &wake_);
    }
  }
}

// The events that a flush waits for are not stored yet. (Work that a permit
// makes due is due by the time that the permit is seen.)
bool Reaper::AwaitsPermit() const {
  for (const auto& [map, driven] : driven_) {
    if (map->AwaitsPermit()) return true;
  }
  return false;
}

// Unless a Flush waits for it.
void Reaper::Pause() {
  if (stopping_ || flush_done_ != flush_asked_) return;
  wake_.WaitFor(&mu_, std::chrono::microseconds(kPauseUs));
}

// Returns whether its sweep continues and is on schedule, or it is due again.
bool Reaper::Turn(TimeCacheMap* map) {
  const int64_t began_us = clock_->NowUs();
  map->Advance(began_us);
  const bool more = map->Sweep(began_us, kMaxSweepStep);
  const int64_t now_us = clock_->NowUs();
  const int64_t due_us = more ? kNeverUs : map->NextDueUs(now_us);
  const int64_t width_us = BucketWidthUs(map->options());
  int64_t took_us = 0;
  {
    absl::MutexLock lock(&mu_);
    const auto it = driven_.find(map);
    if (it == driven_.end()) return false;
    Driven& driven = it->second;
    driven.sweep_began_us = std::min(driven.sweep_began_us, began_us);
    if (more) {
      busy_.push_back(driven.map);
      return now_us - driven.sweep_began_us < width_us / 2;
    }
    driven.busy = false;
    SetDue(&driven, std::min(driven.due_us, due_us));
    took_us = now_us - std::exchange(driven.sweep_began_us, kNeverUs);
    sweeps_.Add(took_us, 1);
  }
  if (took_us >= kSlowSweepUs && slow_sweep_) {
    slow_sweep_(map->namespace_name(), took_us);
  }
  // Changes are read as they come: a pause makes larger batches of them.
  return due_us <= now_us;
}

DurationHistogram Reaper::sweeps() const {
  absl::MutexLock lock(&mu_);
  return sweeps_;
}

void Reaper::Flush() {
  absl::MutexLock lock(&mu_);
  const uint64_t mine = ++flush_asked_;
  wake_.Signal();
  while (flush_done_ < mine && !stopping_) flushed_.Wait(&mu_);
}

}  // namespace timecache::server

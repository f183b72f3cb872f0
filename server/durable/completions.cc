#include "server/durable/completions.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace timecache::server {

Completions::~Completions() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void Completions::Add(Call call) {
  absl::MutexLock lock(&mu_);
  calls_.push_back(std::move(call));
  if (calls_.size() == 1) wake_.Signal();
}

void Completions::AddAfter(std::chrono::microseconds delay, Call call) {
  absl::MutexLock lock(&mu_);
  if (drops_delayed_) return;
  delayed_.emplace(std::chrono::steady_clock::now() + delay, std::move(call));
  wake_.Signal();
}

void Completions::Drain() {
  std::multimap<Time, Call> dropped;
  {
    absl::MutexLock lock(&mu_);
    drops_delayed_ = true;
    dropped.swap(delayed_);
  }
  absl::Notification done;
  Add([&done] { done.Notify(); });
  done.WaitForNotification();
}

void Completions::TakeDue() {
  const Time now = std::chrono::steady_clock::now();
  while (!delayed_.empty() && delayed_.begin()->first <= now) {
    calls_.push_back(std::move(delayed_.begin()->second));
    delayed_.erase(delayed_.begin());
  }
}

void Completions::Run() {
  absl::MutexLock lock(&mu_);
  for (;;) {
    TakeDue();
    if (!calls_.empty()) {
      std::deque<Call> calls;
      calls.swap(calls_);
      mu_.Unlock();
      for (Call& call : calls) call();
      calls.clear();
      mu_.Lock();
    } else if (stopping_) {
      return;
    } else if (delayed_.empty()) {
      wake_.Wait(&mu_);
    } else {
      wake_.WaitUntil(&mu_, delayed_.begin()->first);
    }
  }
}

}  // namespace timecache::server

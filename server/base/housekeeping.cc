#include "server/base/housekeeping.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace timecache {

Housekeeping::Task::~Task() { owner_->Remove(entry_); }

Housekeeping::~Housekeeping() {
  std::thread thread;
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

std::unique_ptr<Housekeeping::Task> Housekeeping::Every(
    std::chrono::microseconds interval, std::function<void()> work) {
  absl::MutexLock lock(&mu_);
  entries_.push_back(
      {interval, std::move(work), std::chrono::steady_clock::now() + interval});
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  changed_.SignalAll();
  return std::unique_ptr<Task>(new Task(this, std::prev(entries_.end())));
}

void Housekeeping::Remove(std::list<Entry>::iterator entry) {
  absl::MutexLock lock(&mu_);
  while (running_ == &*entry) changed_.Wait(&mu_);
  entries_.erase(entry);
}

Housekeeping::Entry* Housekeeping::First() {
  const auto first = std::min_element(
      entries_.begin(), entries_.end(),
      [](const Entry& a, const Entry& b) { return a.due < b.due; });
  return first == entries_.end() ? nullptr : &*first;
}

void Housekeeping::Run() {
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    Entry* const entry = First();
    if (entry == nullptr) {
      changed_.Wait(&mu_);
      continue;
    }
    if (std::chrono::steady_clock::now() < entry->due) {
      changed_.WaitUntil(&mu_, entry->due);
      continue;
    }
    running_ = entry;
    mu_.Unlock();
    entry->work();
    mu_.Lock();
    running_ = nullptr;
    entry->due = std::chrono::steady_clock::now() + entry->interval;
    changed_.SignalAll();
  }
}

}  // namespace timecache

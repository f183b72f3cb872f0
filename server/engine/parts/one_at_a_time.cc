#include "server/engine/parts/one_at_a_time.h"

#include <atomic>
#include <memory>
#include <utility>

namespace timecache::server {

void OneAtATime::Run(Task task) {
  {
    absl::MutexLock lock(&mu_);
    waiting_.push_back(std::move(task));
    if (std::exchange(runs_, true)) return;
  }
  RunWaiting();
}

// A loop, as many tasks end before they return.
void OneAtATime::RunWaiting() {
  for (;;) {
    Task task;
    {
      absl::MutexLock lock(&mu_);
      runs_ = !waiting_.empty();
      if (!runs_) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    // Whichever comes second, the end or the return, goes on.
    const auto first = std::make_shared<std::atomic<bool>>(true);
    task([this, first] {
      if (!first->exchange(false)) RunWaiting();
    });
    if (first->exchange(false)) return;
  }
}

}  // namespace timecache::server

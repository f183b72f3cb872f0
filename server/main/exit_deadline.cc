#include "server/main/exit_deadline.h"

#include <chrono>
#include <utility>

namespace timecache::server {

ExitDeadline::ExitDeadline(absl::Duration patience,
                           std::function<void()> expired)
    : thread_([this, patience, expired = std::move(expired)] {
        Run(patience, expired);
      }) {}

ExitDeadline::~ExitDeadline() {
  {
    absl::MutexLock lock(&mu_);
    ended_ = true;
    change_.Signal();
  }
  thread_.join();
}

void ExitDeadline::Run(absl::Duration patience,
                       const std::function<void()>& expired) {
  const auto until =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
  {
    absl::MutexLock lock(&mu_);
    while (!ended_ && std::chrono::steady_clock::now() < until) {
      change_.WaitUntil(&mu_, until);
    }
    if (ended_) return;
  }
  expired();
}

}  // namespace timecache::server

#include "server/process/ticker.h"

#include <utility>

namespace timecache {

Ticker::Ticker(std::chrono::microseconds interval, std::function<void()> tick)
    : interval_(interval), tick_(std::move(tick)), thread_([this] { Run(); }) {}

Ticker::~Ticker() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void Ticker::Run() {
  using SteadyClock = std::chrono::steady_clock;
  for (;;) {
    {
      absl::MutexLock lock(&mu_);
      const SteadyClock::time_point next = SteadyClock::now() + interval_;
      while (!stopping_ && SteadyClock::now() < next) {
        wake_.WaitUntil(&mu_, next);
      }
      if (stopping_) return;
    }
    tick_();
  }
}

}  // namespace timecache

#include "server/engine/clock.h"

#include <algorithm>

namespace timecache::server {
namespace {

// The longest single wait: small enough that its sum with the current time does
// not overflow.
constexpr std::chrono::microseconds kMaxWait = std::chrono::hours(24);

}  // namespace

SystemClock::SystemClock()
    : start_(std::chrono::steady_clock::now()),
      start_us_(std::chrono::duration_cast<std::chrono::microseconds>(
                    std::chrono::system_clock::now().time_since_epoch())
                    .count()) {}

int64_t SystemClock::NowUs() const {
  return start_us_ + std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::steady_clock::now() - start_)
                         .count();
}

void SystemClock::WaitUntil(int64_t deadline_us, absl::Mutex* mu,
                            SteadyCondVar* wake) const {
  if (deadline_us == kNeverUs) {
    wake->Wait(mu);
    return;
  }
  const int64_t wait_us = deadline_us - NowUs();
  if (wait_us <= 0) return;
  wake->WaitFor(mu, std::min(kMaxWait, std::chrono::microseconds(wait_us)));
}

void ManualClock::WaitUntil(int64_t /*deadline_us*/, absl::Mutex* mu,
                            SteadyCondVar* wake) const {
  wake->Wait(mu);
}

void ManualClock::AdvanceTo(int64_t now_us) {
  int64_t seen = now_us_.load(std::memory_order_relaxed);
  while (seen < now_us && !now_us_.compare_exchange_weak(
                              seen, now_us, std::memory_order_release)) {
  }
}

}  // namespace timecache::server

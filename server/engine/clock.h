// The engine's source of time. The engine never reads a system clock; tests and
// --virtual-clock pass it a clock that stands still.

#ifndef TIMECACHED_SERVER_ENGINE_CLOCK_H_
#define TIMECACHED_SERVER_ENGINE_CLOCK_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/synchronization/mutex.h"
#include "server/common/steady_cond_var.h"

namespace timecache::server {

// Time is a count of microseconds since the Unix epoch. One microsecond is the
// engine's tick: deadlines, deaths and watermarks are whole ticks.
inline constexpr int64_t kMicrosPerSecond = 1'000'000;

// Past every time that is used: "never".
inline constexpr int64_t kNeverUs = INT64_MAX;

// A source of time that never goes back.
//
// Thread-safe. NowUs costs one read of the system's monotonic clock or less.
class Clock {
 public:
  virtual ~Clock() = default;

  virtual int64_t NowUs() const = 0;

  // Waits on `*wake`, which is used with `*mu` (held by the caller), until it
  // is signalled or the clock has reached `deadline_us`. May return early.
  virtual void WaitUntil(int64_t deadline_us, absl::Mutex* mu,
                         SteadyCondVar* wake) const = 0;
};

// The wall time at construction plus monotonic progress since: steps of the
// system's clock do not affect it, in either direction. Time during which the
// machine is suspended does not count, so that a suspend makes an expiry late,
// never early.
class SystemClock final : public Clock {
 public:
  SystemClock();

  int64_t NowUs() const override;
  void WaitUntil(int64_t deadline_us, absl::Mutex* mu,
                 SteadyCondVar* wake) const override;

 private:
  const std::chrono::steady_clock::time_point start_;
  const int64_t start_us_;
};

// Stands still until it is advanced. AdvanceTo does not wake waiting threads:
// the caller signals those whose deadline has passed (see Reaper::Flush).
class ManualClock final : public Clock {
 public:
  explicit ManualClock(int64_t now_us = 0) : now_us_(now_us) {}

  int64_t NowUs() const override {
    return now_us_.load(std::memory_order_acquire);
  }

  // Waits for the signal alone.
  void WaitUntil(int64_t deadline_us, absl::Mutex* mu,
                 SteadyCondVar* wake) const override;

  // Moves the clock to `now_us`; an earlier time does not change it.
  void AdvanceTo(int64_t now_us);
  void AdvanceBy(int64_t step_us) { AdvanceTo(NowUs() + step_us); }

 private:
  std::atomic<int64_t> now_us_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_CLOCK_H_

// The engine's source of time. The engine never reads a system clock; tests and
// --virtual-clock pass it a clock that stands still.

#ifndef TIMECACHED_SERVER_BASE_CLOCK_H_
#define TIMECACHED_SERVER_BASE_CLOCK_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"

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

  // How far the machine's wall clock is ahead of this one; negative: behind it.
  // None for a clock that does not follow it.
  virtual std::optional<int64_t> OffsetUs() const { return std::nullopt; }

  // Moves the clock forward to `now_us`; an earlier time does not change it.
  // Does not wake waiting threads.
  virtual void AdvanceTo(int64_t now_us) = 0;
};

// What a machine knows of time. Thread-safe.
class MachineTime {
 public:
  virtual ~MachineTime() = default;
  // Never goes back, and is not set. Time during which the machine is suspended
  // does not count.
  virtual int64_t SteadyNs() const = 0;
  // Since the Unix epoch; may be set at any time.
  virtual int64_t WallUs() const = 0;

  // This machine's.
  static const MachineTime& System();
};

// The wall time at construction, plus steady progress since, slewed towards the
// wall clock: time never goes back and never jumps, and a clock that was wrong
// at construction, or is set, comes right by itself.
//
// - The slew is a thousandth of the offset each second, at most 1 %: offsets of
//   up to 10 s fall to a third in 17 minutes, larger ones by 36 s an hour. So a
//   time to live is kept within 1 % of it.
// - Where no thread has read the clock for longer than `stall_grace_us`, all of
//   them stood still: SIGSTOP, a paused virtual machine. That time counts as
//   `stall_grace_us`; the rest becomes an offset. So whatever waited for the
//   process is served before the stall makes anything expire.
//
// A thread must wait by WaitUntil at nearly all times (the reaper does): it is
// woken at least every kBeatUs, which keeps time when there are no calls.
//
// Costs one read of the steady clock, and a lock every kBeatUs.
class SystemClock final : public Clock {
 public:
  static constexpr int64_t kBeatUs = 100'000;
  static constexpr int64_t kMaxSlewPpm = 10'000;
  static constexpr int64_t kSlewTimeUs = 1'000 * kMicrosPerSecond;

  // `machine` is not owned. `stall_grace_us` is at least 2 * kBeatUs; kNeverUs:
  // all steady time counts.
  explicit SystemClock(int64_t stall_grace_us = kNeverUs,
                       const MachineTime& machine = MachineTime::System());

  int64_t NowUs() const override;
  void WaitUntil(int64_t deadline_us, absl::Mutex* mu,
                 SteadyCondVar* wake) const override;
  std::optional<int64_t> OffsetUs() const override;
  void AdvanceTo(int64_t now_us) override ABSL_LOCKS_EXCLUDED(mu_);

  // Goes on from this time, which may be before the clock's: for one on which
  // nothing depends yet.
  void Begin(int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);

  // The time of stalls that did not count, in all.
  int64_t stalled_us() const {
    return stalled_ns_.load(std::memory_order_relaxed) / 1'000;
  }

 private:
  // From a steady time on, `now_ns` and `slew_ppm` more than steady progress.
  struct Line {
    int64_t steady_ns;
    int64_t now_ns;
    int64_t slew_ppm;
  };

  int64_t NowNs() const ABSL_LOCKS_EXCLUDED(mu_);
  int64_t At(const Line& line, int64_t steady_ns) const;
  Line Load() const;
  // False while another thread writes it.
  bool TryLoad(Line* line) const;
  int64_t Beat(int64_t advance_to_ns) const ABSL_LOCKS_EXCLUDED(mu_);
  void Write(int64_t steady_ns, int64_t now_ns) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const MachineTime& machine_;
  const int64_t stall_grace_ns_;
  mutable absl::Mutex mu_;
  // A sequence lock: odd while the line is written. No reader may use the old
  // line at a steady time after that of the new one: time could go back.
  mutable std::atomic<uint64_t> writes_{0};
  mutable std::atomic<int64_t> steady_ns_;
  mutable std::atomic<int64_t> now_ns_;
  mutable std::atomic<int64_t> slew_ppm_{0};
  mutable std::atomic<int64_t> stalled_ns_{0};
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

  void AdvanceTo(int64_t now_us) override;
  void AdvanceBy(int64_t step_us) { AdvanceTo(NowUs() + step_us); }

 private:
  std::atomic<int64_t> now_us_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_CLOCK_H_

#include "server/base/clock.h"

#include <algorithm>
#include <chrono>

namespace timecache::server {
namespace {

constexpr int64_t kNsPerUs = 1'000;
constexpr int64_t kPpm = 1'000'000;
constexpr int64_t kBeatNs = SystemClock::kBeatUs * kNsPerUs;
// A line slews for this long: its slew was right for the offset at its start.
constexpr int64_t kMaxSlewNs = 10 * kMicrosPerSecond * kNsPerUs;
// The year 2200: nanoseconds do not overflow for decades after it.
constexpr int64_t kMaxUs = int64_t{7'258'118'400} * kMicrosPerSecond;

class ThisMachine final : public MachineTime {
 public:
  int64_t SteadyNs() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  int64_t WallUs() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

int64_t ToNs(int64_t us) {
  return std::clamp<int64_t>(us, 0, kMaxUs) * kNsPerUs;
}

}  // namespace

const MachineTime& MachineTime::System() {
  static const ThisMachine machine;
  return machine;
}

SystemClock::SystemClock(int64_t stall_grace_us, const MachineTime& machine)
    : machine_(machine),
      stall_grace_ns_(stall_grace_us == kNeverUs ? kNeverUs
                                                 : stall_grace_us * kNsPerUs),
      steady_ns_(machine.SteadyNs()),
      now_ns_(ToNs(machine.WallUs())) {}

int64_t SystemClock::At(const Line& line, int64_t steady_ns) const {
  const int64_t passed_ns =
      std::clamp<int64_t>(steady_ns - line.steady_ns, 0, stall_grace_ns_);
  return line.now_ns + passed_ns +
         std::min(passed_ns, kMaxSlewNs) * line.slew_ppm / kPpm;
}

SystemClock::Line SystemClock::Load() const {
  return {steady_ns_.load(std::memory_order_acquire),
          now_ns_.load(std::memory_order_acquire),
          slew_ppm_.load(std::memory_order_acquire)};
}

bool SystemClock::TryLoad(Line* line) const {
  const uint64_t writes = writes_.load(std::memory_order_acquire);
  *line = Load();
  return writes % 2 == 0 && writes_.load(std::memory_order_acquire) == writes;
}

int64_t SystemClock::NowNs() const {
  // Read before the line, so that it is before that of the next line.
  const int64_t steady_ns = machine_.SteadyNs();
  Line line;
  if (TryLoad(&line) && steady_ns - line.steady_ns < kBeatNs) {
    return At(line, steady_ns);
  }
  return Beat(INT64_MIN);
}

// Starts another line, unless this one is new; it begins at `advance_to_ns`, if
// that is later.
int64_t SystemClock::Beat(int64_t advance_to_ns) const {
  absl::MutexLock lock(&mu_);
  const Line line = Load();
  int64_t steady_ns = machine_.SteadyNs();
  if (steady_ns - line.steady_ns < kBeatNs && advance_to_ns == INT64_MIN) {
    return At(line, steady_ns);
  }
  writes_.fetch_add(1);
  steady_ns = machine_.SteadyNs();
  const int64_t now_ns = std::max(At(line, steady_ns), advance_to_ns);
  const int64_t over_ns = steady_ns - line.steady_ns - stall_grace_ns_;
  if (over_ns > 0) stalled_ns_.fetch_add(over_ns, std::memory_order_relaxed);
  Write(steady_ns, now_ns);
  writes_.fetch_add(1);
  return now_ns;
}

void SystemClock::Write(int64_t steady_ns, int64_t now_ns) const {
  const int64_t offset_us = machine_.WallUs() - now_ns / kNsPerUs;
  steady_ns_.store(steady_ns);
  now_ns_.store(now_ns);
  slew_ppm_.store(
      std::clamp(offset_us / (kSlewTimeUs / kPpm), -kMaxSlewPpm, kMaxSlewPpm));
}

void SystemClock::Begin(int64_t now_us) {
  absl::MutexLock lock(&mu_);
  writes_.fetch_add(1);
  Write(machine_.SteadyNs(), ToNs(now_us));
  writes_.fetch_add(1);
}

int64_t SystemClock::NowUs() const { return NowNs() / kNsPerUs; }

std::optional<int64_t> SystemClock::OffsetUs() const {
  return machine_.WallUs() - NowUs();
}

void SystemClock::AdvanceTo(int64_t now_us) { Beat(ToNs(now_us)); }

void SystemClock::WaitUntil(int64_t deadline_us, absl::Mutex* mu,
                            SteadyCondVar* wake) const {
  if (deadline_us == kNeverUs) {
    wake->Wait(mu);
    return;
  }
  const int64_t wait_us = deadline_us - NowUs();
  if (wait_us <= 0) return;
  // At the most, the clock is 1 % faster than the wait: 1 ms late.
  wake->WaitFor(mu, std::chrono::microseconds(std::min(kBeatUs, wait_us)));
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

#include "tests/client/cpp/time_of_day.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace timecache {
namespace {

std::atomic<int64_t> step_s{0};

}  // namespace

TimeOfDayStep::TimeOfDayStep(absl::Duration by) {
  step_s = absl::ToInt64Seconds(by);
}
TimeOfDayStep::~TimeOfDayStep() { step_s = 0; }

}  // namespace timecache

// In place of the C library's, also for Abseil, gRPC and std::chrono.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const auto result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME) time->tv_sec += timecache::step_s;
  return result;
}

#include "client/cpp/src/shared/wait_word.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <chrono>

namespace timecache {
namespace {

// std::chrono::steady_clock is CLOCK_MONOTONIC, by which FUTEX_WAIT_BITSET
// takes its deadline.
long Futex(std::atomic<uint32_t>& word, int operation, uint32_t value,
           const timespec* deadline) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  return syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value,
                 deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

bool WaitWord::Wait(uint32_t seen, SteadyTime deadline) {
  timespec until = {};
  if (deadline != kSteadyNever) {
    const auto since_boot = deadline.time_since_epoch();
    const auto seconds = std::chrono::floor<std::chrono::seconds>(since_boot);
    until.tv_sec = seconds.count();
    until.tv_nsec = std::chrono::nanoseconds(since_boot - seconds).count();
  }
  const long result = Futex(word_, FUTEX_WAIT_BITSET, seen,
                            deadline == kSteadyNever ? nullptr : &until);
  return result == 0 || errno != ETIMEDOUT;
}

void WaitWord::ChangeForAll() {
  Change();
  Futex(word_, FUTEX_WAKE_BITSET, INT_MAX, nullptr);
}

void WaitWord::ChangeForOne() {
  Change();
  Futex(word_, FUTEX_WAKE_BITSET, 1, nullptr);
}

}  // namespace timecache

// Tells the thread sanitizer what Abseil's locks order.
//
// The system's Abseil is compiled without the sanitizer, which therefore sees
// neither a lock nor an unlock, and takes all that they guard for a race. The
// linker sends our calls of them here (--wrap in tests/engine/CMakeLists.txt).
// Part of the build with the thread sanitizer only.

#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

// The names are those of the member functions in Debian 12's Abseil, 20220623.
#define TIMECACHED_REAL(name) __real__ZN4absl7debian3##name
#define TIMECACHED_WRAP(name) __wrap__ZN4absl7debian3##name

namespace {

// Its detector of deadlocks shares data of its own that the sanitizer would
// report.
[[maybe_unused]] const bool detector_is_off = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

}  // namespace

extern "C" {

void TIMECACHED_REAL(5Mutex4LockEv)(absl::Mutex* mu);
void TIMECACHED_WRAP(5Mutex4LockEv)(absl::Mutex* mu) {
  TIMECACHED_REAL(5Mutex4LockEv)(mu);
  __tsan_acquire(mu);
}

bool TIMECACHED_REAL(5Mutex7TryLockEv)(absl::Mutex* mu);
bool TIMECACHED_WRAP(5Mutex7TryLockEv)(absl::Mutex* mu) {
  if (!TIMECACHED_REAL(5Mutex7TryLockEv)(mu)) return false;
  __tsan_acquire(mu);
  return true;
}

void TIMECACHED_REAL(5Mutex6UnlockEv)(absl::Mutex* mu);
void TIMECACHED_WRAP(5Mutex6UnlockEv)(absl::Mutex* mu) {
  __tsan_release(mu);
  TIMECACHED_REAL(5Mutex6UnlockEv)(mu);
}

void TIMECACHED_REAL(5Mutex10ReaderLockEv)(absl::Mutex* mu);
void TIMECACHED_WRAP(5Mutex10ReaderLockEv)(absl::Mutex* mu) {
  TIMECACHED_REAL(5Mutex10ReaderLockEv)(mu);
  __tsan_acquire(mu);
}

void TIMECACHED_REAL(5Mutex12ReaderUnlockEv)(absl::Mutex* mu);
void TIMECACHED_WRAP(5Mutex12ReaderUnlockEv)(absl::Mutex* mu) {
  __tsan_release(mu);
  TIMECACHED_REAL(5Mutex12ReaderUnlockEv)(mu);
}

void TIMECACHED_REAL(7CondVar4WaitEPNS0_5MutexE)(absl::CondVar* condition,
                                                 absl::Mutex* mu);
void TIMECACHED_WRAP(7CondVar4WaitEPNS0_5MutexE)(absl::CondVar* condition,
                                                 absl::Mutex* mu) {
  __tsan_release(mu);
  TIMECACHED_REAL(7CondVar4WaitEPNS0_5MutexE)(condition, mu);
  __tsan_acquire(mu);
}

bool TIMECACHED_REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(
    absl::CondVar* condition, absl::Mutex* mu, absl::Duration timeout);
bool TIMECACHED_WRAP(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(
    absl::CondVar* condition, absl::Mutex* mu, absl::Duration timeout) {
  __tsan_release(mu);
  const bool timed_out =
      TIMECACHED_REAL(7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE)(
          condition, mu, timeout);
  __tsan_acquire(mu);
  return timed_out;
}

}  // extern "C"

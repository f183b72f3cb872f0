// A condition variable whose time-outs use the monotonic clock.

#ifndef TIMECACHED_SERVER_BASE_STEADY_COND_VAR_H_
#define TIMECACHED_SERVER_BASE_STEADY_COND_VAR_H_

#include <chrono>
#include <condition_variable>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace timecache {

// As absl::CondVar, with waits that end by the monotonic clock. Abseil's (of
// 2022) use the system clock: if that is set back by an hour, a wait of a
// millisecond takes an hour longer.
//
// Thread-safe. Costs one mutex more than absl::CondVar, for a few instructions.
class SteadyCondVar {
 public:
  // All may return early. `*mu` is held by the caller.
  void Wait(absl::Mutex* mu) {
    Unlockable lock{mu};
    condition_.wait(lock);
  }
  void WaitUntil(absl::Mutex* mu,
                 std::chrono::steady_clock::time_point deadline) {
    Unlockable lock{mu};
    condition_.wait_until(lock, deadline);
  }
  void WaitFor(absl::Mutex* mu, std::chrono::microseconds timeout) {
    WaitUntil(mu, std::chrono::steady_clock::now() + timeout);
  }

  void Signal() { condition_.notify_one(); }
  void SignalAll() { condition_.notify_all(); }

 private:
  // absl::Mutex by the names that the standard library knows.
  struct Unlockable {
    void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu->Lock(); }
    void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mu->Unlock(); }
    absl::Mutex* mu;
  };

  std::condition_variable_any condition_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_STEADY_COND_VAR_H_

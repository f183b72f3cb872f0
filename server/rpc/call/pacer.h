// Pauses between pieces of work.

#ifndef TIMECACHED_SERVER_RPC_CALL_PACER_H_
#define TIMECACHED_SERVER_RPC_CALL_PACER_H_

#include <chrono>
#include <thread>

namespace timecache::server {

// Pauses a thread between pieces of work, so that threads that wait for its
// core get it at once and not at the end of the scheduler's slice, several
// milliseconds later. Used by one thread.
class Pacer {
 public:
  // Work between pauses, and the length of a pause: the kernel's timers add
  // some 50 us.
  static constexpr std::chrono::microseconds kWork{250};
  static constexpr std::chrono::microseconds kPause{60};

  // Runs a piece of work, and then pauses if a pause is due.
  template <typename Work>
  void Run(Work work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    worked_ += std::chrono::steady_clock::now() - began;
    if (worked_ < kWork) return;
    worked_ = {};
    std::this_thread::sleep_for(kPause);
  }
  // The thread has waited for work.
  void Rest() { worked_ = {}; }

 private:
  std::chrono::steady_clock::duration worked_{};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_CALL_PACER_H_

// A thread for long work, done in small steps.

#ifndef TIMECACHED_SERVER_SERVICE_CALL_TURNS_H_
#define TIMECACHED_SERVER_SERVICE_CALL_TURNS_H_

#include <chrono>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/common/steady_cond_var.h"
#include "server/service/call/fair_queue.h"

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

// Gives tasks turns on a thread of its own, so that they do not block gRPC's
// threads: each flow in turn, and its tasks one after the other. Thread-safe.
class Turns {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // Works for a millisecond at most; returns whether there is more to do.
    virtual bool TakeTurn() = 0;
  };

  Turns() : thread_([this] { Run(); }) {}
  // Tasks that wait are dropped.
  ~Turns();
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Gives the task turns until it has no more to do. Must not be called while
  // it waits for one.
  void Add(absl::string_view flow, std::shared_ptr<Task> task)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Turn = std::pair<std::string, std::shared_ptr<Task>>;

  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  SteadyCondVar wake_;
  FairQueue<Turn> queue_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CALL_TURNS_H_

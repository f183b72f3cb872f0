// Ends a process that does not end by itself.

#ifndef TIMECACHED_SERVER_MAIN_EXIT_DEADLINE_H_
#define TIMECACHED_SERVER_MAIN_EXIT_DEADLINE_H_

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/base/steady_cond_var.h"

namespace timecache::server {

// A sync of a disk that hangs never returns, and the thread that is in it
// cannot be ended: so what waits for that thread cannot, either. Costs a
// thread.
class ExitDeadline {
 public:
  // Calls `expired` on a thread of its own, unless this is destroyed within
  // `patience`: it is expected to end the process.
  ExitDeadline(absl::Duration patience, std::function<void()> expired);
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

 private:
  void Run(absl::Duration patience, const std::function<void()>& expired)
      ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  SteadyCondVar change_;
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_EXIT_DEADLINE_H_

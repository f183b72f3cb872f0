// Asynchronous tasks, one after the other.

#ifndef TIMECACHED_SERVER_ENGINE_PARTS_ONE_AT_A_TIME_H_
#define TIMECACHED_SERVER_ENGINE_PARTS_ONE_AT_A_TIME_H_

#include <deque>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// Runs tasks in order, each when the one before it has said that it has ended: on
// the thread of Run, or on the one on which that one ended. Must outlive its tasks.
//
// Thread-safe; no lock is held while a task runs.
class OneAtATime {
 public:
  // To be called once, from any thread, also before the task returns.
  using End = absl::AnyInvocable<void()>;
  using Task = absl::AnyInvocable<void(End end)>;

  void Run(Task task) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void RunWaiting() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  std::deque<Task> waiting_ ABSL_GUARDED_BY(mu_);
  bool runs_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_PARTS_ONE_AT_A_TIME_H_

// Periodic work.

#ifndef TIMECACHED_SERVER_BASE_HOUSEKEEPING_H_
#define TIMECACHED_SERVER_BASE_HOUSEKEEPING_H_

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"

namespace timecache {

// Runs tasks at their intervals, one at a time, on one thread: for work of the
// process that may be late by the duration of another task (summary log lines,
// checks for changed files), not for deaths of entries, which the Reaper
// handles.
//
// Thread-safe. Costs a thread from the first task on, which sleeps between
// them; a task costs O(tasks) when one is due.
class Housekeeping {
 private:
  struct Entry;

 public:
  // Runs a task until it is destroyed. The destructor waits for a run in
  // progress; a task must not call it on itself. Must not outlive its
  // Housekeeping.
  class Task {
   public:
    ~Task();
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;

   private:
    friend class Housekeeping;
    Task(Housekeeping* owner, std::list<Entry>::iterator entry)
        : owner_(owner), entry_(entry) {}

    Housekeeping* const owner_;
    const std::list<Entry>::iterator entry_;
  };

  Housekeeping() = default;
  ~Housekeeping();
  Housekeeping(const Housekeeping&) = delete;
  Housekeeping& operator=(const Housekeeping&) = delete;

  // Calls `work` when `interval` has passed, by the monotonic clock, and again
  // an interval after each run. `work` may add tasks.
  [[nodiscard]] std::unique_ptr<Task> Every(std::chrono::microseconds interval,
                                            std::function<void()> work)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Entry {
    std::chrono::microseconds interval;
    std::function<void()> work;
    Time due;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // The entry that is due first, or null.
  Entry* First() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Remove(std::list<Entry>::iterator entry) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  SteadyCondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::list<Entry> entries_ ABSL_GUARDED_BY(mu_);
  // The task that is running.
  const Entry* running_ ABSL_GUARDED_BY(mu_) = nullptr;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_BASE_HOUSEKEEPING_H_

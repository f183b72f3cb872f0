// A thread for long work, done in small steps.

#ifndef TIMECACHED_SERVER_RPC_CALL_FAIR_EXECUTOR_H_
#define TIMECACHED_SERVER_RPC_CALL_FAIR_EXECUTOR_H_

#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"
#include "server/rpc/call/fair_queue.h"

namespace timecache::server {

// Gives tasks turns on a thread of its own, so that they do not block gRPC's
// threads: each flow in turn, and its tasks one after the other. Thread-safe.
class FairExecutor {
 public:
  class Task {
   public:
    virtual ~Task() = default;
    // Works for a millisecond at most; returns whether there is more to do.
    virtual bool TakeTurn() = 0;
  };

  FairExecutor() : thread_([this] { Run(); }) {}
  // Tasks that wait are dropped.
  ~FairExecutor();
  FairExecutor(const FairExecutor&) = delete;
  FairExecutor& operator=(const FairExecutor&) = delete;

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

#endif  // TIMECACHED_SERVER_RPC_CALL_FAIR_EXECUTOR_H_

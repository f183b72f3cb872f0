// A function that is called every so often.

#ifndef TIMECACHED_SERVER_PROCESS_TICKER_H_
#define TIMECACHED_SERVER_PROCESS_TICKER_H_

#include <chrono>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/common/steady_cond_var.h"

namespace timecache {

// Calls `tick` every `interval`, by the monotonic clock, on a thread of its own
// from its construction to its destruction; a tick that is under way ends
// first. Thread-safe.
class Ticker {
 public:
  Ticker(std::chrono::microseconds interval, std::function<void()> tick);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  const std::chrono::microseconds interval_;
  const std::function<void()> tick_;
  absl::Mutex mu_;
  SteadyCondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_PROCESS_TICKER_H_

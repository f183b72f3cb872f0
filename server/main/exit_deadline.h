// Ends a process that does not end by itself.

#ifndef TIMECACHED_SERVER_MAIN_EXIT_DEADLINE_H_
#define TIMECACHED_SERVER_MAIN_EXIT_DEADLINE_H_

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "absl/time/time.h"

namespace timecache::server {

// A sync of a disk that hangs never returns, and the thread that is in it
// cannot be ended: so what waits for that thread cannot, either. Costs a
// thread.
class ExitDeadline {
 public:
  // Calls `expired` on a thread of its own, unless this is destroyed within
  // `patience`: it is expected to end the process.
  ExitDeadline(absl::Duration patience, std::function<void()> expired)
      : thread_([patience, expired = std::move(expired)](
                    const std::stop_token& destroyed) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any never;
          never.wait_for(lock, destroyed, absl::ToChronoNanoseconds(patience),
                         [] { return false; });
          if (!destroyed.stop_requested()) expired();
        }) {}

 private:
  const std::jthread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_EXIT_DEADLINE_H_

// The signals that control a server.

#ifndef TIMECACHED_SERVER_MAIN_SIGNALS_H_
#define TIMECACHED_SERVER_MAIN_SIGNALS_H_

#include <csignal>

#include "absl/time/time.h"

namespace timecache::server {

// Takes SIGHUP, SIGINT and SIGTERM one at a time, where the program waits for
// them, in place of handlers. Not thread-safe.
class Signals {
 public:
  // Holds them back from all threads. To be made before there is another
  // thread, because threads inherit that. SIGPIPE is ignored: a closed reader
  // is an error of the write.
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  // What Next returns after Wake.
  static constexpr int kWake = SIGUSR1;

  // Waits for the next.
  int Next();
  // Ends a Next, now or later. From any thread.
  void Wake() const;
  // Waits for SIGINT or SIGTERM; 0 if none came in time.
  int NextEndWithin(absl::Duration patience);
  // Whether SIGINT or SIGTERM is pending. From any thread.
  bool EndPending() const;
  // From now on SIGINT and SIGTERM end the process at once.
  void Release();

 private:
  sigset_t all_;
  sigset_t ends_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SIGNALS_H_

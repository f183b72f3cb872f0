#include "server/main/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace timecache::server {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

}  // namespace

Signals::Signals() {
  sigemptyset(&ends_);
  sigaddset(&ends_, SIGINT);
  sigaddset(&ends_, SIGTERM);
  all_ = ends_;
  sigaddset(&all_, SIGHUP);
  sigaddset(&all_, kWake);
  pthread_sigmask(SIG_BLOCK, &all_, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int Signals::Next() {
  int signal = 0;
  while (sigwait(&all_, &signal) != 0) {
  }
  return signal;
}

void Signals::Wake() const { kill(getpid(), kWake); }

int Signals::NextEndWithin(absl::Duration patience) {
  const SteadyTime until =
      std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
  while (true) {
    const absl::Duration rest =
        absl::FromChrono(until - std::chrono::steady_clock::now());
    const timespec left =
        absl::ToTimespec(std::max(rest, absl::ZeroDuration()));
    const int signal = sigtimedwait(&ends_, nullptr, &left);
    if (signal > 0) return signal;
    if (errno != EINTR) return 0;
  }
}

bool Signals::EndPending() const {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGINT) == 1 ||
         sigismember(&pending, SIGTERM) == 1;
}

void Signals::Release() { pthread_sigmask(SIG_UNBLOCK, &ends_, nullptr); }

}  // namespace timecache::server

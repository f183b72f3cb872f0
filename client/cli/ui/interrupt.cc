#include "client/cli/ui/interrupt.h"

#include <pthread.h>
#include <signal.h>

#include <utility>

namespace timecache::cli {
namespace {

// Ends the thread; held back as well.
constexpr int kQuitSignal = SIGUSR1;

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, kQuitSignal}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace

void InterruptHandler::Hold() {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

InterruptHandler::InterruptHandler(std::function<void()> on_interrupt) {
  Hold();
  thread_ = std::thread(
      [this, signals = Signals(), on_interrupt = std::move(on_interrupt)] {
        int signal = 0;
        while (sigwait(&signals, &signal) == 0 && signal != kQuitSignal) {
          signal_ = signal;
          on_interrupt();
        }
      });
}

InterruptHandler::~InterruptHandler() {
  pthread_kill(thread_.native_handle(), kQuitSignal);
  thread_.join();
}

}  // namespace timecache::cli

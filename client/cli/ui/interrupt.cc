#include "client/cli/ui/interrupt.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <csignal>
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

// The thread of the handler that lives.
std::atomic<pthread_t> handler_thread = pthread_t{};
static_assert(std::atomic<pthread_t>::is_always_lock_free);

void PassToHandler(int signal) {
  const pthread_t thread = handler_thread.load();
  if (thread != pthread_t{}) {
    pthread_kill(thread, signal);
    return;
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

void InterruptHandler::PassOn() {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::signal(signal, PassToHandler);
  }
}

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
  handler_thread = thread_.native_handle();
}

InterruptHandler::~InterruptHandler() {
  handler_thread = pthread_t{};
  pthread_kill(thread_.native_handle(), kQuitSignal);
  thread_.join();
}

}  // namespace timecache::cli

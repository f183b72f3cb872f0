// Ctrl-C as an event instead of a death.

#ifndef TIMECACHED_CLIENT_CLI_UI_INTERRUPT_H_
#define TIMECACHED_CLIENT_CLI_UI_INTERRUPT_H_

#include <atomic>
#include <functional>
#include <thread>

namespace timecache::cli {

// While it lives, SIGINT and SIGTERM call `on_interrupt`, on a thread of its
// own, in place of ending the process.
class InterruptHandler {
 public:
  // Holds the signals back until there is a handler. To be called before any
  // other thread is started, because threads inherit it.
  static void Hold();

  explicit InterruptHandler(std::function<void()> on_interrupt);
  ~InterruptHandler();

  // In a process that has threads by then which do not hold them back: passes
  // the signals that these get on to the handler that lives, or, where none does,
  // ends the process as without this.
  static void PassOn();

  // The last of the two that came; 0: none.
  int signal() const { return signal_; }

  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

 private:
  std::atomic<int> signal_ = 0;
  std::thread thread_;
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_INTERRUPT_H_

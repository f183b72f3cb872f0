// A program under test at a terminal of its own.

#ifndef TIMECACHED_TESTS_CLIENT_CLI_TERMINAL_PROCESS_H_
#define TIMECACHED_TESTS_CLIENT_CLI_TERMINAL_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace timecache {

// A child process whose standard input, output and error are one terminal. Not
// thread-safe.
class TerminalProcess {
 public:
  explicit TerminalProcess(std::vector<std::string> argv, int rows = 24,
                           int columns = 80);
  // Kills it if it has not been waited for.
  ~TerminalProcess();
  TerminalProcess(const TerminalProcess&) = delete;
  TerminalProcess& operator=(const TerminalProcess&) = delete;

  // Reads until the screen was sent this; false if it ended before.
  bool WaitFor(const std::string& text);
  // All that was read.
  const std::string& screen() const { return screen_; }
  void Type(const std::string& text);
  // Waits for its end; the exit code, -1 if a signal killed it.
  int Wait();

 private:
  bool Read();

  pid_t pid_ = -1;
  int fd_ = -1;
  std::string screen_;
};

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_CLI_TERMINAL_PROCESS_H_

// A program under test at a terminal of its own.

#ifndef TIMECACHED_TESTS_CLIENT_CLI_TERMINAL_PROCESS_H_
#define TIMECACHED_TESTS_CLIENT_CLI_TERMINAL_PROCESS_H_

#include <sys/types.h>

#include <cstddef>
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

  // Reads until the screen was sent this, behind what was waited for before;
  // false if it ended first.
  bool WaitFor(const std::string& text);
  // All that was read.
  const std::string& screen() const { return screen_; }
  void Type(const std::string& text);
  void Kill(int signal) const;
  // Whether the terminal is in the mode that a program finds it in.
  bool Echoes() const;
  // Waits for its end; the exit code, -1 if a signal killed it.
  int Wait();

 private:
  bool Read();

  pid_t pid_ = -1;
  int fd_ = -1;
  std::string screen_;
  size_t seen_ = 0;  // Of the screen, by WaitFor.
};

}  // namespace timecache

#endif  // TIMECACHED_TESTS_CLIENT_CLI_TERMINAL_PROCESS_H_

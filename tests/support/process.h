// A program under test, run as its users run it. Every wait has an end.

#ifndef TIMECACHED_TESTS_SUPPORT_PROCESS_H_
#define TIMECACHED_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace timecache::test {

struct Exit {
  // -1: ended by a signal, whose number is in `signal`.
  int code = -1;
  int signal = 0;
  // All that was not taken by ReadLine.
  std::string out;
  std::string err;
};

// A child process with its standard output and error in pipes. Not thread-safe.
// A test fails, and the process is killed, when something takes longer than
// kPatience.
class ChildProcess {
 public:
  static constexpr absl::Duration kPatience = absl::Minutes(3);

  // `argv` begins with the program's path. `input`: all of its standard input,
  // at most what a pipe holds (64 KiB). `environment` is added to the
  // test's, less its variables that begin with TIMECACHED_.
  explicit ChildProcess(
      const std::vector<std::string>& argv, const std::string& input = "",
      const std::map<std::string, std::string>& environment = {});
  // Kills it if it has not been waited for.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The next line, without its end; fails the test if none comes.
  std::string ReadLine() { return ReadLine(&out_); }
  std::string ReadErrorLine() { return ReadLine(&err_); }

  void Signal(int signal);
  // Nobody reads its standard output any longer.
  void CloseOutput();
  // Whether it has ended; it still has to be waited for.
  bool HasEnded() const;
  // Waits for its end.
  Exit Wait();

 private:
  // The reading end of a pipe.
  struct Pipe {
    int fd = -1;
    std::string bytes;
    bool ended = false;
  };

  std::string ReadLine(Pipe* pipe);
  // Reads what comes until `deadline`; false if nothing came.
  bool Fill(absl::Time deadline);

  pid_t pid_ = -1;
  std::string name_;
  Pipe out_;
  Pipe err_;
};

// Runs a program to its end.
Exit RunToEnd(const std::vector<std::string>& argv,
              const std::string& input = "");

}  // namespace timecache::test

#endif  // TIMECACHED_TESTS_SUPPORT_PROCESS_H_

// A program under test, run as its users run it.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <string>
#include <vector>

namespace timecache {

struct ProcessResult {
  int exit_code = -1;  // -1: killed by a signal.
  std::string out;     // What of standard output was not read before.
  std::string err;
};

// A child process. Not thread-safe. Its standard error goes to a file, so that
// it can never be held up by it.
class Process {
 public:
  // `argv` begins with the program's path. `input` is its standard input, at
  // most what a pipe holds (64 KiB).
  explicit Process(std::vector<std::string> argv,
                   const std::string& input = "");
  // Kills it if it has not been waited for.
  ~Process();

  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // The next line of its standard output, without its end; empty at the end.
  std::string ReadLine();
  // Nobody reads its standard output any longer.
  void CloseOutput();
  void Signal(int signal);
  // Waits for its end.
  ProcessResult Wait();

 private:
  pid_t pid_ = -1;
  std::FILE* out_ = nullptr;
  std::FILE* err_ = nullptr;
};

}  // namespace timecache

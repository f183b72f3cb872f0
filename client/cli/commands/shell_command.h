// Commands that are run for events, each by a shell of its own.

#ifndef TIMECACHED_CLIENT_CLI_COMMANDS_SHELL_COMMAND_H_
#define TIMECACHED_CLIENT_CLI_COMMANDS_SHELL_COMMAND_H_

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace timecache::cli {

// Runs one command line by `/bin/sh -c`, as often and as many at a time as
// asked.
//
// A command has its input as a file without a name: it may read all of it, a
// part or nothing. Its output and errors are this process's. It is a process
// group of its own, so that Ctrl-C at the terminal does not reach it, and it
// has the default signals.
//
// Thread-safe. Run costs a copy of the input and a process, and waits for it.
class ShellCommand {
 public:
  struct Exit {
    int code = 0;    // 0 to 255; meaningful if it was not killed.
    int signal = 0;  // That killed it; 0: none.
    // "exited with 3", "was killed by signal 9 (Killed)".
    std::string Text() const;
  };

  explicit ShellCommand(std::string command_line)
      : command_line_(std::move(command_line)) {}
  ShellCommand(const ShellCommand&) = delete;
  ShellCommand& operator=(const ShellCommand&) = delete;

  // Runs it with `input`, and with `environment` added to this process's.
  // RESOURCE_EXHAUSTED, or what else the system says, where it cannot be
  // started.
  absl::StatusOr<Exit> Run(
      std::string_view input,
      const std::map<std::string, std::string>& environment);

  // How many run now.
  size_t running();

  // Kills all that run, with the processes of their groups, and ends this
  // process, without destructors. No Run returns any more, so that no caller
  // mistakes this for the command's own end.
  [[noreturn]] void KillAllAndExit(int exit_code);

 private:
  absl::StatusOr<pid_t> Start(
      int input_fd, const std::map<std::string, std::string>& environment);

  const std::string command_line_;

  absl::Mutex mu_;
  std::set<pid_t> running_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_SHELL_COMMAND_H_

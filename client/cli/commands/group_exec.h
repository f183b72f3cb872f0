// watch --group --exec: a shell command as a worker of a consumer group.

#ifndef TIMECACHED_CLIENT_CLI_COMMANDS_GROUP_EXEC_H_
#define TIMECACHED_CLIENT_CLI_COMMANDS_GROUP_EXEC_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/commands/shell_command.h"
#include "client/cli/context.h"
#include "client/cli/watch_arguments.h"
#include "timecache/settle.h"
#include "timecache/watch_types.h"

namespace timecache::cli {

// Runs the command for an event and reads from its exit how to settle it.
// Thread-safe.
class EventCommand {
 public:
  // Both must outlive it.
  EventCommand(const Context& context, const WatchArguments& arguments);

  // Exit 0: ack. --put-back-exit: put back. Anything else, a command that was
  // killed or cannot be run: nack with --retry-delay, and a message.
  Settle Handle(const ExpiredEvent& event);

  // How many commands run now.
  size_t running() { return command_.running(); }

  // Kills them and ends this process. Their events are not settled.
  [[noreturn]] void KillAllAndExit(int exit_code) {
    command_.KillAllAndExit(exit_code);
  }

  // Reports errors outside of the command: a repeated one only once, until an
  // event arrives.
  void PrintError(const absl::Status& why);

 private:
  // INVALID_ARGUMENT for what no environment holds.
  absl::StatusOr<std::map<std::string, std::string>> Environment(
      const ExpiredEvent& event) const;
  Settle Failed(const ExpiredEvent& event, const std::string& how) const;

  const Context& context_;
  const WatchArguments& arguments_;
  ShellCommand command_;

  absl::Mutex mu_;
  std::string last_topic_ ABSL_GUARDED_BY(mu_);
};

// Handles the events of context.ns() until it is interrupted; returns the exit
// code.
int RunGroupExec(const Context& context, const WatchArguments& arguments);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_GROUP_EXEC_H_

// What commands print, and ask.

#ifndef TIMECACHED_CLIENT_CLI_UI_COMMAND_RESULT_H_
#define TIMECACHED_CLIENT_CLI_UI_COMMAND_RESULT_H_

#include <string>

#include "absl/status/status.h"
#include "client/cli/context.h"
#include "client/cli/ui/output.h"

namespace timecache::cli {

// Prints the object as JSON, or else the text. Returns `code`, or what says
// that it could not be written.
int Print(const Context& context, const Json& object, const std::string& text,
          int code = kExitDone);

// The end for a key that is not there: its text goes to standard error, so that
// scripts that take a value from standard output get none.
int Miss(const Context& context, const Json& object);

// The end for a call that failed: that a condition did not hold is no error but
// an answer. `what` would be true had it held: "stored", "removed".
int Refused(const Context& context, const char* what,
            const absl::Status& status);

// Whether a question can be asked: standard input and standard error are a
// terminal. Otherwise, in scripts, commands go on without a question, as those
// of redis-cli and kubectl do.
bool IsInteractive();

// Asks on standard error; only "y" or "yes", in either case, is a yes.
bool Ask(const std::string& question);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_COMMAND_RESULT_H_

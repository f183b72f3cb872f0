// Asks before what cannot be undone.

#ifndef TIMECACHED_CLIENT_CLI_UI_CONFIRM_H_
#define TIMECACHED_CLIENT_CLI_UI_CONFIRM_H_

#include <string>

namespace timecache::cli {

// Whether a question can be asked: standard input and standard error are a
// terminal. Otherwise, in scripts, commands go on without a question, as those
// of redis-cli and kubectl do.
bool IsInteractive();

// Asks on standard error; only "y" or "yes", in either case, is a yes.
bool Ask(const std::string& question);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_CONFIRM_H_

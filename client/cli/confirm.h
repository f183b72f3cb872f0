// Asks before what cannot be undone.
#pragma once

#include <string>

namespace timecache::cli {

// Whether there is someone to ask: standard input and standard error are a
// terminal. Where not, a command does what it says without a question, as
// redis-cli and kubectl do: a script that calls it means it.
bool IsInteractive();

// Asks on standard error; only "y" or "yes", in either case, is a yes.
bool Ask(const std::string& question);

}  // namespace timecache::cli

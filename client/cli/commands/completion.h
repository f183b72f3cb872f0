// What the shell offers when a user presses Tab.

#ifndef TIMECACHED_CLIENT_CLI_COMMANDS_COMPLETION_H_
#define TIMECACHED_CLIENT_CLI_COMMANDS_COMPLETION_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "timecache/client.h"

namespace timecache::cli {

// What could stand in a place.
struct Completion {
  struct Candidate {
    std::string word;
    std::string help;
  };
  std::vector<Candidate> candidates;
  // The shell knows better: names of files.
  bool files = false;
};

// Asks the server for names. `flags`: those on the line that say which server,
// and how to reach it.
struct ServerNames {
  using Names = std::vector<std::string>;

  std::function<Names(const std::vector<std::string>& flags)> namespaces;
  // The groups of the namespaces that the line names; of none: of the one that
  // the flags name.
  std::function<Names(const std::vector<std::string>& flags,
                      const std::vector<std::string>& namespaces)>
      groups;
  // Of named servers; null: none.
  std::function<Names()> contexts = nullptr;
};

// Those that a client says, which is empty where the flags cannot be read, and
// the contexts of the user's file.
ServerNames NamesOf(const std::function<std::optional<Client>(
                        const std::vector<std::string>& flags)>& client_of);

// What could stand in place of the last of `words`, which begins with it, in
// the command line of `app`; words[0] is behind the program's name. Follows the
// commands and flags that there are.
Completion Complete(const CLI::App& app, const std::vector<std::string>& words,
                    const ServerNames& names);

// A script for bash, zsh or fish that asks the program itself, so that it is
// the same for all versions; empty for another shell.
std::string CompletionScript(const std::string& shell);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_COMMANDS_COMPLETION_H_

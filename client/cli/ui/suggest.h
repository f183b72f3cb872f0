// The commands and flags of a command line, and what one with an unknown word
// was meant to say.

#ifndef TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_
#define TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace timecache::cli {

std::vector<const CLI::App*> Commands(const CLI::App& app);
// Null: there is none of this name.
const CLI::App* FindCommand(const CLI::App& app, const std::string& name);
// A flag, "--name", of the last of the commands or of one before.
const CLI::Option* FindFlag(const std::vector<const CLI::App*>& path,
                            const std::string& name);

// Says which command or flag of the words does not exist, and which was
// probably meant: the nearest one, or what other programs call by that name.
// None if all exist: then the mistake is another. words[0] is behind the
// program's name.
std::optional<std::string> ExplainUnknownWord(
    const CLI::App& app, const std::vector<std::string>& words);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_

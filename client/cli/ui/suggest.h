// What a command line with an unknown word was meant to say.

#ifndef TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_
#define TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_

#include <optional>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace timecache::cli {

// Says which command or flag of the words does not exist, and which was
// probably meant: the nearest one, or what other programs call by that name.
// None if all exist: then the mistake is another. words[0] is behind the
// program's name.
std::optional<std::string> ExplainUnknownWord(
    const CLI::App& app, const std::vector<std::string>& words);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_

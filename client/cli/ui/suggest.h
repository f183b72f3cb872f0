// What a command line with an unknown word was meant to say.

#ifndef TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_
#define TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"

namespace timecache::cli {

// How many letters must be added, left out, changed, or swapped with their
// neighbour to make the one of the other. Costs the product of their lengths.
size_t EditDistance(std::string_view a, std::string_view b);

// Says which command or flag of the words does not exist, and which was
// probably meant: the nearest one, or what other programs call by that name.
// None if all exist: then the mistake is another. words[0] is behind the
// program's name.
std::optional<std::string> ExplainUnknownWord(
    const CLI::App& app, const std::vector<std::string>& words);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_SUGGEST_H_

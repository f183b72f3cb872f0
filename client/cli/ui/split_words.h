// A line as a shell takes it apart.

#ifndef TIMECACHED_CLIENT_CLI_UI_SPLIT_WORDS_H_
#define TIMECACHED_CLIENT_CLI_UI_SPLIT_WORDS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace timecache::cli {

// Words with spaces between them. Quotes keep what is in them together, 'as it
// is' or "with \" and \\"; outside of quotes a backslash keeps the next
// character. INVALID_ARGUMENT for a quote, or a backslash, without its end.
absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view line);

}  // namespace timecache::cli

#endif  // TIMECACHED_CLIENT_CLI_UI_SPLIT_WORDS_H_

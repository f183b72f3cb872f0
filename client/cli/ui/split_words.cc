#include "client/cli/ui/split_words.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"

namespace timecache::cli {

absl::StatusOr<std::vector<std::string>> SplitWords(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    char c = line[i];
    if (quote == 0 && absl::ascii_isspace(static_cast<unsigned char>(c))) {
      in_word = false;
      continue;
    }
    if (!in_word) {
      words.emplace_back();
      in_word = true;
    }
    if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      continue;
    }
    if (c == quote) {
      quote = 0;
      continue;
    }
    if (c == '\\' && quote != '\'') {
      const bool last = i + 1 == line.size();
      if (last) return absl::InvalidArgumentError("a backslash ends the line");
      // In quotes it is one, unless it is needed.
      const char next = line[i + 1];
      if (quote == 0 || next == '"' || next == '\\') c = line[++i];
    }
    words.back() += c;
  }
  if (quote != 0) return absl::InvalidArgumentError("a quote has no end");
  return words;
}

}  // namespace timecache::cli

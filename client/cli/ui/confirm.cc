#include "client/cli/ui/confirm.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/ascii.h"
#include "client/cli/ui/bytes.h"

namespace timecache::cli {

bool IsInteractive() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1;
}

bool Ask(const std::string& question) {
  std::fprintf(stderr, "%s [y/N] ", Escape(question).c_str());
  std::fflush(stderr);
  char answer[64];
  if (std::fgets(answer, sizeof(answer), stdin) == nullptr) {
    std::fputc('\n', stderr);
    return false;
  }
  const std::string word =
      absl::AsciiStrToLower(absl::StripAsciiWhitespace(answer));
  return word == "y" || word == "yes";
}

}  // namespace timecache::cli

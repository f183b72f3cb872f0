#include "client/cli/ui/command_result.h"

#include <unistd.h>

#include <cstdio>

#include "absl/strings/ascii.h"
#include "client/cli/ui/bytes.h"
#include "timecache/status.h"

namespace timecache::cli {

int Print(const Context& context, const Json& object, const std::string& text,
          int code) {
  const bool written = context.json ? WriteJson(object) : WriteLine(text);
  return written && Flush() ? code : context.FailToWrite();
}

int Miss(const Context& context, const Json& object) {
  if (context.json) return Print(context, object, "", kExitNotFound);
  Warn("not found");
  return kExitNotFound;
}

int Refused(const Context& context, const char* what,
            const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status) && !absl::IsAlreadyExists(status)) {
    return context.Fail(status);
  }
  Json object = {{what, false}};
  if (const auto reason = ReasonName(status)) object["reason"] = *reason;
  if (context.json) return Print(context, object, "", kExitNotFound);
  Warn(std::string(status.message()));
  return kExitNotFound;
}

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

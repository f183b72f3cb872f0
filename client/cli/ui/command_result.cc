#include "client/cli/ui/command_result.h"

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
  Json object = {{what, false}};
  if (const auto reason = ReasonName(status)) object["reason"] = *reason;
  if (context.json) return Print(context, object, "", kExitNotFound);
  Warn(std::string(status.message()));
  return kExitNotFound;
}

}  // namespace timecache::cli

#include "server/config/config_access.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/config/config_listeners.h"

namespace timecache {
namespace {

constexpr int32_t kDefaultSlowCallNanos = 100'000'000;
constexpr int64_t kMaxSlowCallSeconds = 3600;

}  // namespace

void FillAccessDefaults(config::v1::ServerConfig* config) {
  config::v1::AccessConfig& access = *config->mutable_access();
  if (!access.has_file()) access.set_file("");
  config::v1::DebugConfig& debug = *config->mutable_debug();
  if (!debug.has_reflection()) debug.set_reflection(true);
  if (!debug.has_channelz()) debug.set_channelz(false);
  config::v1::LogConfig& log = *config->mutable_log();
  if (!log.has_slow_call()) {
    log.mutable_slow_call()->set_nanos(kDefaultSlowCallNanos);
  }
}

std::optional<AccessProblem> FindAccessProblem(
    const config::v1::ServerConfig& config) {
  const google::protobuf::Duration& slow = config.log().slow_call();
  // YAML has no negative durations.
  if (slow.seconds() > kMaxSlowCallSeconds ||
      (slow.seconds() == kMaxSlowCallSeconds && slow.nanos() > 0)) {
    return AccessProblem{"log.slow_call", "must be from 0s (none) to 1h"};
  }
  if (!config.debug().channelz()) return std::nullopt;
  if (!config.access().file().empty()) {
    return AccessProblem{"debug.channelz",
                         "does not go with access.file: no rule can guard it"};
  }
  for (const config::v1::Listener& listener : config.listeners()) {
    if (IsLocalAddress(listener.address())) continue;
    return AccessProblem{
        "debug.channelz",
        absl::StrCat("does not go with a listener that other machines may "
                     "reach, ",
                     listener.address(), ": no rule can guard it")};
  }
  return std::nullopt;
}

}  // namespace timecache

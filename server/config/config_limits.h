#ifndef TIMECACHED_SERVER_CONFIG_CONFIG_LIMITS_H_
#define TIMECACHED_SERVER_CONFIG_CONFIG_LIMITS_H_

#include <optional>
#include <string>

#include "timecache/config/v1/config.pb.h"

namespace timecache {

// ServerLimits of config.proto: its defaults and ranges. Thread-safe.

// Sets what is unset, but for max_memory_bytes: what that is depends on the
// machine (see system_memory.h).
void FillLimitDefaults(config::v1::ServerLimits* limits);

// What is out of its range: the field's name in ServerLimits, and the range.
struct LimitProblem {
  std::string field;
  std::string what;
};
// The first problem of limits whose defaults are filled in; none if all is
// well.
std::optional<LimitProblem> FindLimitProblem(
    const config::v1::ServerLimits& limits);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_CONFIG_CONFIG_LIMITS_H_

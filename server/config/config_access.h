#ifndef TIMECACHED_SERVER_CONFIG_CONFIG_ACCESS_H_
#define TIMECACHED_SERVER_CONFIG_CONFIG_ACCESS_H_

#include <optional>
#include <string>

#include "timecache/config/v1/config.pb.h"

namespace timecache {

// What config.proto says of calls: who may make them, who may look into them,
// and which are slow. Defaults, and what is allowed. Thread-safe.

// Sets what is unset of access, debug and log.slow_call.
void FillAccessDefaults(config::v1::ServerConfig* config);

// What is wrong: the field's full name, and what to do about it.
struct AccessProblem {
  std::string path;
  std::string what;
};
// The first problem of a configuration whose defaults are filled in; none if
// all is well.
std::optional<AccessProblem> FindAccessProblem(
    const config::v1::ServerConfig& config);

}  // namespace timecache

#endif  // TIMECACHED_SERVER_CONFIG_CONFIG_ACCESS_H_

#ifndef TIMECACHED_SERVER_CONFIG_CONFIG_FIELDS_H_
#define TIMECACHED_SERVER_CONFIG_CONFIG_FIELDS_H_

#include <optional>
#include <string>

#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The larger parts of config.proto, for config.cc: their defaults, and what is
// allowed. Thread-safe.

// What is wrong: the field's full name, and what to do about it.
struct ConfigProblem {
  std::string path;
  std::string what;
};

// Each sets what is unset of its part, and finds the first problem of it once
// the defaults of all are filled in; none if all is well.

// Listeners, their TLS, health_address.
void FillListenerDefaults(config::v1::ServerConfig* config);
std::optional<ConfigProblem> FindListenerProblem(
    const config::v1::ServerConfig& config);

// All limits but max_memory_bytes: what that is depends on the machine (see
// system_memory.h).
void FillLimitDefaults(config::v1::ServerConfig* config);
std::optional<ConfigProblem> FindLimitProblem(
    const config::v1::ServerConfig& config);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_CONFIG_CONFIG_FIELDS_H_

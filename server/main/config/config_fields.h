#ifndef TIMECACHED_SERVER_MAIN_CONFIG_CONFIG_FIELDS_H_
#define TIMECACHED_SERVER_MAIN_CONFIG_CONFIG_FIELDS_H_

#include <optional>
#include <string>

#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The larger parts of config.proto, for config.cc: their defaults and valid
// ranges. Thread-safe.

// A problem: the field's full name, and how to fix it.
struct ConfigProblem {
  std::string path;
  std::string what;
};

// Each sets the unset fields of its part, or finds its first problem once all
// defaults are set; none if all is valid.

// Listeners, their TLS, health_address.
void FillListenerDefaults(config::v1::ServerConfig* config);
std::optional<ConfigProblem> FindListenerProblem(
    const config::v1::ServerConfig& config);

// All numbers and durations of the server, by a table; limits.max_memory_bytes
// and max_response_bytes have no default, as they depend on the machine (see
// system_memory.h).
void FillRangeDefaults(config::v1::ServerConfig* config);
std::optional<ConfigProblem> FindRangeProblem(
    const config::v1::ServerConfig& config);

// The cluster. Its defaults depend on the listeners' and its own durations: they
// are filled last, and again when these have changed.
void FillClusterDefaults(config::v1::ServerConfig* config);
std::optional<ConfigProblem> FindClusterProblem(
    const config::v1::ServerConfig& config);
// What a node needs and neither the file nor a flag gives.
std::optional<ConfigProblem> FindClusterOmission(
    const config::v1::ServerConfig& config);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CONFIG_CONFIG_FIELDS_H_

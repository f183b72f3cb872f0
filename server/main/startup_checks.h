// Whether this machine can do what the configuration asks for.

#ifndef TIMECACHED_SERVER_MAIN_STARTUP_CHECKS_H_
#define TIMECACHED_SERVER_MAIN_STARTUP_CHECKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "server/main/machine.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// Open files besides connections: listeners, gRPC's own, logs, certificates.
inline constexpr int64_t kReservedFiles = 256;
// A wall clock before this, or 20 years later, is wrong: this program was not
// there, or is not used any more. 2025-01-01T00:00:00Z.
inline constexpr int64_t kEarliestTimeUs = 1'735'689'600'000'000;
inline constexpr int64_t kLatestTimeUs =
    kEarliestTimeUs + int64_t{20} * 365 * 86'400 * 1'000'000;

// Something that will not work as configured.
struct StartupWarning {
  // An event of the log, as open_files_low.
  std::string event;
  // What is wrong, with the figures, and what to do.
  std::string about;
};

// None of them keeps a server from starting: it may never need what is not
// there. Thread-safe, cheap.
std::vector<StartupWarning> CheckStartup(
    const Machine& machine, const config::v1::ServerConfig& config);

// Logs the machine (a line "machine") and each warning.
void LogStartupChecks(const Machine& machine,
                      const config::v1::ServerConfig& config);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_STARTUP_CHECKS_H_

// From the configuration to the server's options, at its start and at every
// reload.

#ifndef TIMECACHED_SERVER_MAIN_SERVER_SETUP_H_
#define TIMECACHED_SERVER_MAIN_SERVER_SETUP_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/clock.h"
#include "server/engine/server_account.h"
#include "server/main/config/flags.h"
#include "server/main/reload.h"
#include "server/ops/call_log.h"
#include "server/rpc/server.h"
#include "timecache/config/v1/config.pb.h"
#include "timecache/v1/server.pb.h"

namespace timecache::server {

// Thread-safe functions, but for AddAppliers.

// The configuration that the flags ask for, checked whole; ConfigFromFlags
// alone does not know what a namespace may be.
absl::StatusOr<config::v1::ServerConfig> ReadConfig(const Flags& flags);

// Whether the files that the configuration names can be read and are valid: the
// same result as using them at start.
absl::Status CheckConfigFiles(const config::v1::ServerConfig& config);

int64_t SlowCallUs(const config::v1::ServerConfig& config);
int64_t StallGraceUs(const config::v1::ServerConfig& config);
RegistryLimits ToRegistryLimits(const config::v1::ServerLimits& limits);

// All options except objects: access, credentials, observers. `virtual_clock`
// may be null.
ServerOptions ToServerOptions(const config::v1::ServerConfig& config,
                              ManualClock* virtual_clock);

// A Reaper::SlowSweep.
void LogSlowSweep(const std::string& map, int64_t took_us);

void DescribeSlowCalls(const CallLog& from, v1::ListSlowCallsResponse* calls);

// Adds the appliers of fields that take effect without a restart; `namespaces` is
// that of the namespaces, of each registry. None is owned; all must outlive `reload`.
void AddAppliers(ServerAccount* account, Reload::Applier namespaces,
                 Server* server, CallLog* call_log, Reload* reload);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SERVER_SETUP_H_

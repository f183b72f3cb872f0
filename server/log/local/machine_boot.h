// The boot of the machine that last wrote a journal: unsynced data survives a
// crash of the process, and is lost with power.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_MACHINE_BOOT_H_
#define TIMECACHED_SERVER_LOG_LOCAL_MACHINE_BOOT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/local/file_system.h"

namespace timecache::server {

// The system's random boot id; empty if it has none.
std::string MachineBootId();

// The last id of WriteBoot; empty if the directory has none, as earlier
// versions left it.
absl::StatusOr<std::string> ReadBoot(FileSystem* files,
                                     const std::string& directory);
absl::Status WriteBoot(FileSystem* files, const std::string& directory,
                       const std::string& boot_id);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_MACHINE_BOOT_H_

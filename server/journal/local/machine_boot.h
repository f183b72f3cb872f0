// Which boot of the machine last wrote a journal: what the system had and the
// disk had not is there after a crash of the process, and is lost with power.

#ifndef TIMECACHED_SERVER_JOURNAL_LOCAL_MACHINE_BOOT_H_
#define TIMECACHED_SERVER_JOURNAL_LOCAL_MACHINE_BOOT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/journal/local/file_system.h"

namespace timecache::server {

// A random id that the system has from its start to its end; empty if it does
// not say.
std::string MachineBootId();

// What WriteBoot wrote last; empty if the directory has none, as versions
// before this one left it.
absl::StatusOr<std::string> ReadBoot(FileSystem* files,
                                     const std::string& directory);
absl::Status WriteBoot(FileSystem* files, const std::string& directory,
                       const std::string& boot_id);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_LOCAL_MACHINE_BOOT_H_

#include "server/log/local/machine_boot.h"

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/base/read_file.h"
#include "server/log/local/journal_directory.h"

namespace timecache::server {

std::string MachineBootId() {
  constexpr size_t kMaxBytes = 64;
  return std::string(absl::StripAsciiWhitespace(
      ReadFile("/proc/sys/kernel/random/boot_id", kMaxBytes).value_or("")));
}

absl::StatusOr<std::string> ReadBoot(FileSystem* files,
                                     const std::string& directory) {
  auto id = ReadSmallFile(files, absl::StrCat(directory, "/", kBootFile));
  if (absl::IsNotFound(id.status())) return std::string();
  return id;
}

absl::Status WriteBoot(FileSystem* files, const std::string& directory,
                       const std::string& boot_id) {
  return WriteFileAtomically(files, directory, kBootFile, boot_id);
}

}  // namespace timecache::server

#include "server/main/control_group.h"

#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/base/read_file.h"

namespace timecache::server {

std::string ReadSystemFile(const std::string& path) {
  constexpr size_t kMaxBytes = 64 << 10;
  return std::string(
      absl::StripAsciiWhitespace(ReadFile(path, kMaxBytes).value_or("")));
}

std::vector<std::string> ControlGroupDirectories(const std::string& root,
                                                 absl::string_view controller) {
  const std::string mount = root + "/sys/fs/cgroup";
  const std::string text = ReadSystemFile(root + "/proc/self/cgroup");
  std::vector<std::string> directories;
  // Lines are hierarchy:controllers:path; that of version 2 names no
  // controller.
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3) continue;
    const std::vector<absl::string_view> names = absl::StrSplit(parts[1], ',');
    if (parts[1].empty()) {
      directories.push_back(mount);
    } else if (absl::c_linear_search(names, controller)) {
      directories.push_back(absl::StrCat(mount, "/", controller));
    } else {
      continue;
    }
    for (const absl::string_view part :
         absl::StrSplit(parts[2], '/', absl::SkipEmpty())) {
      directories.push_back(absl::StrCat(directories.back(), "/", part));
    }
  }
  return directories;
}

}  // namespace timecache::server

// Linux's control group of this process.

#ifndef TIMECACHED_SERVER_MAIN_CONTROL_GROUP_H_
#define TIMECACHED_SERVER_MAIN_CONTROL_GROUP_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace timecache::server {

// `root` stands before the paths of /proc and /sys, for tests. Thread-safe.

// The text of a small file of the kernel's without white space around it; empty
// if it cannot be read.
std::string ReadSystemFile(const std::string& path);

// The directories of the group that `controller` has this process in, and of
// all groups above it, whose limits hold as well: of version 2, and of version
// 1 where that has the controller. In a container the path may be the host's,
// and not be there: then the first directory is the container's own.
std::vector<std::string> ControlGroupDirectories(const std::string& root,
                                                 absl::string_view controller);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_CONTROL_GROUP_H_

// The machine's resources for this process, as reported by the system.

#ifndef TIMECACHED_SERVER_MAIN_MACHINE_H_
#define TIMECACHED_SERVER_MAIN_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace timecache::server {

// Unknown values are 0 or empty.
struct Machine {
  // Cores that the process may run on, and, where its control group gets less
  // than these, how many cores' time.
  int cores = 0;
  double cpu_quota_cores = 0;
  // As in system_memory.h.
  int64_t memory_bytes = 0;
  // RLIMIT_NOFILE.
  int64_t open_files = 0;
  int64_t open_files_max = 0;
  // always, madvise or never.
  std::string transparent_huge_pages;
  // The wall clock, in microseconds since 1970.
  int64_t now_us = 0;
};

// Thread-safe. Costs a few small files of /proc and /sys. `root` stands before
// their paths, for tests.
Machine ReadMachine(const std::string& root = "");

// Raises the soft limit of open files to the hard one, as a program may that
// does not use select(2).
void RaiseOpenFiles();

// For the above, with `root` before the paths of /proc and /sys, for tests.

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

#endif  // TIMECACHED_SERVER_MAIN_MACHINE_H_

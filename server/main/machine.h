// The machine's resources for this process, as reported by the system.

#ifndef TIMECACHED_SERVER_MAIN_MACHINE_H_
#define TIMECACHED_SERVER_MAIN_MACHINE_H_

#include <cstdint>
#include <string>

namespace timecache::server {

// Unknown values, and limits that are none, are 0 or empty.
struct Machine {
  // Cores that the process may run on, and, where its control group gets less
  // than these, how many cores' time.
  int cores = 0;
  double cpu_quota_cores = 0;
  // The machine's memory, the limit of the control group (v2 or v1, its own or
  // one above it) and RLIMIT_AS.
  int64_t total_bytes = 0;
  int64_t control_group_bytes = 0;
  int64_t address_space_bytes = 0;
  // The least of these.
  int64_t memory_bytes() const;
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

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_MACHINE_H_

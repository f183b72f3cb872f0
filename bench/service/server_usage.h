// What a running process has used.
#pragma once

#include <sys/types.h>

namespace timecache::bench {

// Processor time so far, all threads, to a microsecond. Throws
// std::runtime_error if the process has ended, as does the other.
double CpuUs(pid_t pid);

// Resident memory now.
double ResidentKib(pid_t pid);

}  // namespace timecache::bench

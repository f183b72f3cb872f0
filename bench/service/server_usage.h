// What a running process has used.

#ifndef TIMECACHED_BENCH_SERVICE_SERVER_USAGE_H_
#define TIMECACHED_BENCH_SERVICE_SERVER_USAGE_H_

#include <sys/types.h>

namespace timecache::bench {

// Processor time so far, all threads, to a microsecond. Throws
// std::runtime_error if the process has ended, as does the other.
double CpuUs(pid_t pid);

// Resident memory now.
double ResidentKib(pid_t pid);

}  // namespace timecache::bench

#endif  // TIMECACHED_BENCH_SERVICE_SERVER_USAGE_H_

// The memory that this process may use.

#ifndef TIMECACHED_SERVER_MAIN_SYSTEM_MEMORY_H_
#define TIMECACHED_SERVER_MAIN_SYSTEM_MEMORY_H_

#include <cstdint>
#include <string>

#include "server/main/machine.h"
#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The engine gets this much of the machine's memory or the control group's: the
// rest is for gRPC, threads, and what the allocator cannot use.
inline constexpr int kMemoryPercent = 65;
// Of RLIMIT_AS, which counts addresses, used or not: those of stacks, of the
// allocator's arenas, and of dead buckets whose memory is not yet returned.
inline constexpr int kAddressSpacePercent = 40;

// Limits of the engine's memory, and of gRPC's in addition; 0: no limit.
struct MemoryPlan {
  int64_t engine_bytes = 0;
  int64_t grpc_bytes = 0;
  // Limit of responses that clients have not read.
  int64_t response_bytes = 0;
  // Its source: "limits.max_memory_bytes", "MemTotal", "cgroup" or "RLIMIT_AS";
  // "none" if none is known.
  std::string source;
};

// The configuration's limits, or defaults derived from the machine's.
MemoryPlan PlanMemory(const config::v1::ServerLimits& limits,
                      const Machine& machine);

// Makes the allocator return large blocks to the system when they are freed:
// otherwise it keeps them in its heaps once one has been freed, and with values
// of 1 MiB holds half as much again as is in use. Where RLIMIT_AS has no room
// for it, keeps it from setting aside 64 MiB of addresses for each thread. To
// be called before there are threads.
void FitAllocator();

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_SYSTEM_MEMORY_H_

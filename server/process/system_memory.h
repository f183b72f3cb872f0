// How much memory this process may have.

#ifndef TIMECACHED_SERVER_PROCESS_SYSTEM_MEMORY_H_
#define TIMECACHED_SERVER_PROCESS_SYSTEM_MEMORY_H_

#include <cstdint>
#include <string>

#include "timecache/config/v1/config.pb.h"

namespace timecache::server {

// The engine gets this much of the machine's memory or the control group's: the
// rest is for gRPC, threads, and what the allocator cannot use.
inline constexpr int kMemoryPercent = 65;
// Of RLIMIT_AS, which counts addresses, used or not: those of stacks, of the
// allocator's arenas, and of what a bucket that died at once has left and not
// yet given back.
inline constexpr int kAddressSpacePercent = 40;

// Where to look; tests say where else.
struct MemorySources {
  // Before /proc and /sys.
  std::string root;
  // As getrlimit gives it; 0: ask there.
  uint64_t address_space_bytes = 0;
};

// What the engine may hold, and gRPC beside it; 0: no limit.
struct MemoryPlan {
  int64_t engine_bytes = 0;
  int64_t grpc_bytes = 0;
  // Of responses that clients have not read.
  int64_t response_bytes = 0;
  // What it follows from: "limits.max_memory_bytes", "MemTotal", "cgroup" or
  // "RLIMIT_AS"; "none" where nothing can be found out.
  std::string source;
};

// The least of the machine's memory, the control group's limit (v2 or v1, its
// own or one above it) and RLIMIT_AS; 0 if nothing can be found out.
int64_t AvailableMemoryBytes(const MemorySources& sources = {});

// What the configuration says, or else what these leave.
MemoryPlan PlanMemory(const config::v1::ServerLimits& limits,
                      const MemorySources& sources = {});

// Has the allocator give large blocks back as they are freed: it would keep
// them in its heaps once it has seen one freed, and with values of 1 MiB a half
// more than is held. Where RLIMIT_AS has no room for it, keeps it from setting
// aside 64 MiB of addresses for each thread. To be called before there are
// threads.
void FitAllocator();

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PROCESS_SYSTEM_MEMORY_H_

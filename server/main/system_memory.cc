#include "server/main/system_memory.h"

#include <malloc.h>

#include <algorithm>

#include "server/rpc/call/request.h"

namespace timecache::server {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
// Of what the engine gets. gRPC holds a request until it is complete, and
// beyond its quota it ends streams and connections of any client: some of the
// largest requests must fit at the same time, besides some hundreds of calls
// and connections.
constexpr int64_t kGrpcShare = 8;
constexpr int64_t kMinGrpcBytes = 4 * static_cast<int64_t>(kMaxRequestBytes);
constexpr int64_t kResponseShare = 8;
constexpr int64_t kMinResponseBytes = int64_t{32} << 20;
// Where the engine has no limit: enough for some connections at full speed.
constexpr int64_t kUnlimitedResponseBytes = int64_t{256} << 20;

}  // namespace

MemoryPlan PlanMemory(const config::v1::ServerLimits& limits,
                      const Machine& machine) {
  MemoryPlan plan;
  if (limits.has_max_memory_bytes()) {
    plan.source = "limits.max_memory_bytes";
    plan.engine_bytes = static_cast<int64_t>(limits.max_memory_bytes());
  } else {
    plan.source = "none";
    const auto consider = [&](int64_t bytes, int percent, const char* source) {
      const int64_t share = bytes / 100 * percent;
      if (bytes == 0 || (plan.engine_bytes > 0 && share >= plan.engine_bytes)) {
        return;
      }
      plan.engine_bytes = share;
      plan.source = source;
    };
    consider(machine.total_bytes, kMemoryPercent, "MemTotal");
    consider(machine.control_group_bytes, kMemoryPercent, "cgroup");
    consider(machine.address_space_bytes, kAddressSpacePercent, "RLIMIT_AS");
  }
  if (plan.engine_bytes > 0) {
    plan.grpc_bytes = std::max(plan.engine_bytes / kGrpcShare, kMinGrpcBytes);
  }
  plan.response_bytes =
      limits.has_max_response_bytes()
          ? static_cast<int64_t>(limits.max_response_bytes())
      : plan.engine_bytes == 0
          ? kUnlimitedResponseBytes
          : std::max(plan.engine_bytes / kResponseShare, kMinResponseBytes);
  return plan;
}

void FitAllocator() {
  // Smaller blocks are reused: each mapping costs a page fault for 4 KiB.
  constexpr int kMappedBytes = 256 << 10;
  // A quarter of Linux's limit of mappings (vm.max_map_count), which slabs and
  // stacks need, too: in a server with more large values than that their share
  // of idle memory is small.
  constexpr int kMaxMappings = 16 << 10;
  // With a fixed mapping threshold the allocator no longer adapts this one, and
  // would return and request a little memory at each call.
  constexpr int kTrimBytes = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kMappedBytes);
  mallopt(M_MMAP_MAX, kMaxMappings);
  mallopt(M_TRIM_THRESHOLD, kTrimBytes);
  const int64_t bytes = ReadMachine().address_space_bytes;
  // Beyond this the allocator's own limit, by cores, is as good.
  constexpr int64_t kMaxArenas = 64;
  if (bytes == 0 || bytes >= kMaxArenas * kGiB) return;
  mallopt(M_ARENA_MAX,
          static_cast<int>(std::clamp<int64_t>(bytes / kGiB, 1, kMaxArenas)));
}

}  // namespace timecache::server

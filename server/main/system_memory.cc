#include "server/main/system_memory.h"

#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/main/machine.h"
#include "server/rpc/call/request.h"

namespace timecache::server {
namespace {

constexpr int64_t kBytesPerKiB = 1024;
constexpr int64_t kGiB = int64_t{1} << 30;
constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();
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

int64_t MachineBytes(const std::string& root) {
  const std::string text = ReadSystemFile(root + "/proc/meminfo");
  for (absl::string_view rest : absl::StrSplit(text, '\n')) {
    int64_t kib;
    if (absl::ConsumePrefix(&rest, "MemTotal:") &&
        absl::ConsumeSuffix(&rest, "kB") && absl::SimpleAtoi(rest, &kib)) {
      return kib * kBytesPerKiB;
    }
  }
  return kUnlimited;
}

// The least limit of the process's group and those above it.
int64_t ControlGroupBytes(const std::string& root) {
  int64_t least = kUnlimited;
  for (const std::string& group : ControlGroupDirectories(root, "memory")) {
    // Of version 2 and of version 1: a number, or "max".
    for (const char* file : {"/memory.max", "/memory.limit_in_bytes"}) {
      int64_t limit;
      if (absl::SimpleAtoi(ReadSystemFile(group + file), &limit)) {
        least = std::min(least, limit);
      }
    }
  }
  return least;
}

int64_t AddressSpaceBytes(uint64_t given) {
  if (given == 0) {
    rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0) return kUnlimited;
    given = limit.rlim_cur;
  }
  return given >= uint64_t{kUnlimited} ? kUnlimited
                                       : static_cast<int64_t>(given);
}

int64_t Percent(int64_t bytes, int percent) {
  return bytes == kUnlimited ? kUnlimited : bytes / 100 * percent;
}

}  // namespace

int64_t AvailableMemoryBytes(const MemorySources& sources) {
  const int64_t least =
      std::min({MachineBytes(sources.root), ControlGroupBytes(sources.root),
                AddressSpaceBytes(sources.address_space_bytes)});
  return least == kUnlimited ? 0 : least;
}

MemoryPlan PlanMemory(const config::v1::ServerLimits& limits,
                      const MemorySources& sources) {
  MemoryPlan plan;
  if (limits.has_max_memory_bytes()) {
    plan.source = "limits.max_memory_bytes";
    plan.engine_bytes = static_cast<int64_t>(limits.max_memory_bytes());
  } else {
    plan.source = "none";
    int64_t least = kUnlimited;
    const auto consider = [&](int64_t bytes, const char* source) {
      if (bytes >= least) return;
      least = bytes;
      plan.source = source;
    };
    consider(Percent(MachineBytes(sources.root), kMemoryPercent), "MemTotal");
    consider(Percent(ControlGroupBytes(sources.root), kMemoryPercent),
             "cgroup");
    consider(Percent(AddressSpaceBytes(sources.address_space_bytes),
                     kAddressSpacePercent),
             "RLIMIT_AS");
    plan.engine_bytes = least == kUnlimited ? 0 : least;
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
  const int64_t bytes = AddressSpaceBytes(0);
  // Beyond this the allocator's own limit, by cores, is as good.
  constexpr int64_t kMaxArenas = 64;
  if (bytes >= kMaxArenas * kGiB) return;
  mallopt(M_ARENA_MAX,
          static_cast<int>(std::clamp<int64_t>(bytes / kGiB, 1, kMaxArenas)));
}

}  // namespace timecache::server

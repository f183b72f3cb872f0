#include "server/engine/map/usage.h"

namespace timecache {

absl::string_view LimitReason(LimitHit hit) {
  switch (hit) {
    case LimitHit::kMaxEntries:
      return "MAX_ENTRIES";
    case LimitHit::kMaxBytes:
      return "MAX_BYTES";
    case LimitHit::kServerMaxEntries:
      return "SERVER_MAX_ENTRIES";
    case LimitHit::kServerMaxBytes:
      return "SERVER_MAX_BYTES";
    case LimitHit::kMaxMemory:
      return "MAX_MEMORY";
    case LimitHit::kShardFull:
      return "SHARD_FULL";
    case LimitHit::kNone:
      break;
  }
  return "NONE";
}

}  // namespace timecache

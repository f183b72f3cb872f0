#include "server/engine/store/limit_hit.h"

#include "server/base/check.h"

namespace timecache::server {

Reason LimitReason(LimitHit hit) {
  switch (hit) {
    case LimitHit::kMaxEntries:
      return Reason::kMaxEntries;
    case LimitHit::kMaxBytes:
      return Reason::kMaxBytes;
    case LimitHit::kServerMaxEntries:
      return Reason::kServerMaxEntries;
    case LimitHit::kServerMaxBytes:
      return Reason::kServerMaxBytes;
    case LimitHit::kMaxMemory:
      return Reason::kMaxMemory;
    case LimitHit::kShardFull:
      return Reason::kShardFull;
    case LimitHit::kDiskFull:
      return Reason::kDiskFull;
    case LimitHit::kJournalBacklog:
      return Reason::kJournalBacklog;
    case LimitHit::kNone:
      break;
  }
  TIMECACHED_CHECK(false);
}

}  // namespace timecache::server

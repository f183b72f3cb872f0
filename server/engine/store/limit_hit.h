#ifndef TIMECACHED_SERVER_ENGINE_STORE_LIMIT_HIT_H_
#define TIMECACHED_SERVER_ENGINE_STORE_LIMIT_HIT_H_

#include <cstddef>
#include <cstdint>

#include "server/base/reason.h"

namespace timecache::server {

// The limit that an operation would exceed.
enum class LimitHit : uint8_t {
  kNone,
  kMaxEntries,
  kMaxBytes,
  kServerMaxEntries,
  kServerMaxBytes,
  // The process has no memory for more: see MemoryBudget.
  kMaxMemory,
  // A shard can hold no more records, whatever the limits.
  kShardFull,
  // The change log has no room, or is behind: see ChangeLog::CheckRoom. The
  // last of them.
  kDiskFull,
  kJournalBacklog,
};
inline constexpr size_t kLimitHits =
    static_cast<size_t>(LimitHit::kJournalBacklog) + 1;

// The reason of the error that says so, as MAX_ENTRIES.
Reason LimitReason(LimitHit hit);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_STORE_LIMIT_HIT_H_

#include "server/engine/change_waits.h"

#include <optional>

#include "server/base/error.h"

namespace timecache::server {

void CountRefused(const absl::Status& error, uint64_t operations,
                  TimeCacheMap* map) {
  const std::optional<Reason> reason = ReasonOf(error);
  if (reason == Reason::kDiskFull) {
    map->CountRefused(LimitHit::kDiskFull, operations);
  } else if (reason == Reason::kJournalBacklog) {
    map->CountRefused(LimitHit::kJournalBacklog, operations);
  }
}

MapOr WithRoom(MapOr map) {
  if (!map.ok()) return map;
  if (ChangeLog* const log = (*map)->change_log()) {
    if (absl::Status status = log->CheckRoom(); !status.ok()) {
      CountRefused(status, 1, map->get());
      return status;
    }
  }
  return map;
}

}  // namespace timecache::server

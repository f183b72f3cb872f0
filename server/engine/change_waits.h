// What the calls of a LocalStore wait for, and are refused by: the change log of
// a durable map.

#ifndef TIMECACHED_SERVER_ENGINE_CHANGE_WAITS_H_
#define TIMECACHED_SERVER_ENGINE_CHANGE_WAITS_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/map/change_log.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {

using MapOr = absl::StatusOr<std::shared_ptr<TimeCacheMap>>;

// Counts operations that the change log of `map` has refused.
void CountRefused(const absl::Status& error, uint64_t operations,
                  TimeCacheMap* map);

// The map that was found, if a change of its description or its groups could be
// stored: such a change is refused before it is made, or not at all.
MapOr WithRoom(MapOr map);

// Calls `done` with `answer` once all reported changes of `map` are stored, or
// those that `waits` waits for.
template <typename Done, typename T>
void WhenKept(
    std::shared_ptr<TimeCacheMap> map, Done done, T answer,
    void (ChangeLog::*waits)(ChangeLog::Done) = &ChangeLog::WhenAllKept) {
  ChangeLog* const log = map->change_log();
  if (log == nullptr) return done(std::move(answer));
  // The log is the map's.
  (log->*waits)([map = std::move(map), done = std::move(done),
                 answer = std::move(answer)](absl::Status status) mutable {
    if (status.ok()) return done(std::move(answer));
    CountRefused(status, 1, map.get());
    done(std::move(status));
  });
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_CHANGE_WAITS_H_

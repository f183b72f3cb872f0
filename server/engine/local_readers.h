// Readers of the maps of this process.

#ifndef TIMECACHED_SERVER_ENGINE_LOCAL_READERS_H_
#define TIMECACHED_SERVER_ENGINE_LOCAL_READERS_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/map/time_cache_map.h"
#include "server/engine/store/readers.h"
#include "server/engine/store/store_types.h"

namespace timecache::server {

// Each reader keeps its map. Errors as Store's functions that open readers.
absl::StatusOr<std::unique_ptr<EventReader>> OpenLogReader(
    std::shared_ptr<TimeCacheMap> map, LogStart start, const LogPoints& points,
    int64_t now_us, std::function<void()> wake);
absl::StatusOr<std::unique_ptr<EventReader>> OpenChangeReader(
    std::shared_ptr<TimeCacheMap> map, LogStart start, const LogPoints& points,
    int64_t now_us, std::function<void()> wake);
absl::StatusOr<std::unique_ptr<EventReader>> JoinGroupReader(
    std::shared_ptr<TimeCacheMap> map, const Membership& membership,
    int64_t now_us, std::function<void()> wake);
absl::StatusOr<std::unique_ptr<EventReader>> OpenExpiringReader(
    std::shared_ptr<TimeCacheMap> map, const ExpiringOptions& options,
    std::function<void()> wake);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_LOCAL_READERS_H_

// What is going to die in a namespace, as WatchExpiring reads it.

#ifndef TIMECACHED_SERVER_SERVICE_WATCH_EXPIRING_SOURCE_H_
#define TIMECACHED_SERVER_SERVICE_WATCH_EXPIRING_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/engine/expiry/expiring_cursor.h"
#include "server/engine/map/time_cache_map.h"
#include "server/service/watch/watch_request.h"
#include "server/service/watch/watch_source.h"

namespace timecache {

// A cursor on the live buckets. What is new in them is read once for all
// watches of a namespace; what a lead time has newly reached is read for each.
class ExpiringSource final : public WatchSource {
 public:
  // As `request` says, which must outlive the source, unless the namespace has
  // `max_watchers` of them: RESOURCE_EXHAUSTED (MAX_EXPIRING_WATCHERS).
  static absl::StatusOr<std::unique_ptr<WatchSource>> Open(
      std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
      int64_t max_watchers, std::function<void()> wake);

  Reading Read(int64_t now_us, WatchMessage* message) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;
  int64_t NextDueUs(int64_t now_us) override;

 private:
  ExpiringSource(std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
                 std::unique_ptr<ExpiringCursor> cursor);

  const WatchRequest* const request_;
  // Declared before `cursor_`, which it outlives.
  const std::shared_ptr<TimeCacheMap> map_;
  const std::unique_ptr<ExpiringCursor> cursor_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_WATCH_EXPIRING_SOURCE_H_

// A namespace's log as a watch reads it.

#ifndef TIMECACHED_SERVER_SERVICE_WATCH_LOG_SOURCE_H_
#define TIMECACHED_SERVER_SERVICE_WATCH_LOG_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/expiry/expiry_log.h"
#include "server/engine/map/time_cache_map.h"
#include "server/service/watch/watch_request.h"
#include "server/service/watch/watch_source.h"

namespace timecache {

// A cursor: what it has not read costs nothing. Without a filter it tells the
// log's own bytes, which all watchers share.
class LogSource final : public WatchSource {
 public:
  // As `request` says, which must outlive the source: at a resume point, from
  // the oldest event, or from now on. Errors as ExpiryLog::Resume, with the
  // metadata `namespace`.
  static absl::StatusOr<std::unique_ptr<WatchSource>> Open(
      std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
      int64_t now_us, std::function<void()> wake);

  Reading Read(int64_t now_us, WatchMessage* message) override;
  void OnWritten(int64_t now_us, int64_t since_us) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;

 private:
  LogSource(std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
            std::unique_ptr<ExpiryLog::Cursor> cursor);

  const WatchRequest* const request_;
  const std::shared_ptr<TimeCacheMap> map_;
  // After the map, which owns the log: destroyed before it.
  const std::unique_ptr<ExpiryLog::Cursor> cursor_;
  // Events that were read and are not being written yet, by death.
  std::vector<std::pair<int64_t, uint64_t>> unwritten_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_WATCH_LOG_SOURCE_H_

// What is going to die in a namespace, as a watch with lead_time reads it.

#ifndef TIMECACHED_SERVER_SERVICE_LEAD_SOURCE_H_
#define TIMECACHED_SERVER_SERVICE_LEAD_SOURCE_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "server/engine/time_cache_map.h"
#include "server/engine/upcoming.h"
#include "server/service/watch_request.h"
#include "server/service/watch_source.h"

namespace timecache {

// A cursor on the live buckets. Its events are written for this watch alone: a
// thousand watches with lead_time read each entry a thousand times.
class LeadSource final : public WatchSource {
 public:
  // As `request` says, which must outlive the source.
  static std::unique_ptr<WatchSource> Open(std::shared_ptr<TimeCacheMap> map,
                                           const WatchRequest* request,
                                           std::function<void()> wake);

  Reading Read(int64_t now_us, WatchMessage* message) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;
  int64_t NextDueUs(int64_t now_us) override;

 private:
  LeadSource(std::shared_ptr<TimeCacheMap> map, const WatchRequest* request,
             std::function<void()> wake);

  const WatchRequest* const request_;
  const std::shared_ptr<TimeCacheMap> map_;
  // After the map, whose it is: destroyed before it.
  const std::unique_ptr<Upcoming::Cursor> cursor_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_LEAD_SOURCE_H_

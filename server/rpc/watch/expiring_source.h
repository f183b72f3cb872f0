// The entries about to die in a namespace, as WatchExpiring reads them.

#ifndef TIMECACHED_SERVER_RPC_WATCH_EXPIRING_SOURCE_H_
#define TIMECACHED_SERVER_RPC_WATCH_EXPIRING_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "server/engine/store/readers.h"
#include "server/rpc/watch/watch_request.h"
#include "server/rpc/watch/watch_source.h"

namespace timecache::server {

// A cursor on the live buckets. New entries in them are read once for all
// watches of a namespace; entries newly within a lead time are read for each.
class ExpiringSource final : public WatchSource {
 public:
  // Of the namespace `name`. `request` is not owned and must outlive the
  // source.
  ExpiringSource(std::string name, const WatchRequest* request,
                 std::unique_ptr<ExpiringReader> reader);

  Reading Read(int64_t now_us, WatchMessage* message) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;
  int64_t NextDueUs(int64_t now_us) override;

 private:
  const std::string name_;
  const WatchRequest* const request_;
  const std::unique_ptr<ExpiringReader> reader_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_EXPIRING_SOURCE_H_

// A namespace's log as a watch reads it.

#ifndef TIMECACHED_SERVER_RPC_WATCH_LOG_SOURCE_H_
#define TIMECACHED_SERVER_RPC_WATCH_LOG_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/store/readers.h"
#include "server/rpc/watch/watch_request.h"
#include "server/rpc/watch/watch_source.h"

namespace timecache::server {

// A cursor: unread events cost nothing. Without a filter it sends the log's own
// bytes, which all watchers share.
class LogSource final : public WatchSource {
 public:
  // Of the namespace `name`. `request` is not owned and must outlive the
  // source.
  LogSource(std::string name, const WatchRequest* request,
            std::unique_ptr<LogReader> reader);

  Reading Read(int64_t now_us, WatchMessage* message) override;
  void OnWritten(int64_t now_us, int64_t since_us) override;
  void RefreshWatermark(int64_t now_us, int64_t max_age_us) override;

 private:
  const std::string name_;
  const WatchRequest* const request_;
  const std::unique_ptr<LogReader> reader_;
  // Events that were read and are not being written yet, by death time.
  std::vector<std::pair<int64_t, uint64_t>> unwritten_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_RPC_WATCH_LOG_SOURCE_H_

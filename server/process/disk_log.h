// Logs that the journal's disk is full, and that it has room again.

#ifndef TIMECACHED_SERVER_PROCESS_DISK_LOG_H_
#define TIMECACHED_SERVER_PROCESS_DISK_LOG_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "server/journal/journal.h"
#include "server/observability/log.h"

namespace timecache::server {

// Used by one thread.
class DiskLog {
 public:
  using Write = std::function<void(LogLevel, std::string_view, LogFields)>;

  // `journal` is not owned; null: there is nothing to log.
  DiskLog(const Journal* journal, std::string directory, Write write = Log);

  // To be called once a second or so. journal_disk_full is a warning,
  // journal_disk_has_room tells for how long it was so.
  void Look();

 private:
  const Journal* const journal_;
  const std::string directory_;
  const Write write_;
  // When it was first seen to be full, on the steady clock; negative: it is not.
  int64_t full_since_ms_ = -1;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PROCESS_DISK_LOG_H_

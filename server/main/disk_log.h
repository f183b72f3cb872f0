// Logs that the journal's disk is full, and that it has room again.

#ifndef TIMECACHED_SERVER_MAIN_DISK_LOG_H_
#define TIMECACHED_SERVER_MAIN_DISK_LOG_H_

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/ops/log.h"

namespace timecache::server {

// Used by one thread.
class DiskLog {
 public:
  using Write = std::function<void(LogLevel, std::string_view, LogFields)>;

  // `full` says whether writes to the journal in `directory` are refused.
  DiskLog(std::function<bool()> full, std::string directory, Write write = Log);

  // Call it about once a second. journal_disk_full is a warning,
  // journal_disk_has_room reports for how long the disk was full.
  void Look();

 private:
  const std::function<bool()> full_;
  const std::string directory_;
  const Write write_;
  // When it was first seen to be full, if it is.
  std::optional<std::chrono::steady_clock::time_point> full_since_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_DISK_LOG_H_

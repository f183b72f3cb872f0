#include "server/main/disk_log.h"

#include <utility>

namespace timecache::server {

DiskLog::DiskLog(std::function<bool()> full, std::string directory, Write write)
    : full_(std::move(full)),
      directory_(std::move(directory)),
      write_(std::move(write)) {}

void DiskLog::Look() {
  if (full_() == full_since_.has_value()) return;
  const auto now = std::chrono::steady_clock::now();
  if (!full_since_) {
    full_since_ = now;
    write_(LogLevel::kWarning, "journal_disk_full",
           {{"journal", directory_},
            {"message",
             "changes of durable namespaces are refused (DISK_FULL) until the "
             "disk has room, also for the reserve: make the volume larger, or "
             "remove files that are not the journal's"}});
  } else {
    const auto full_for = std::chrono::duration_cast<std::chrono::milliseconds>(
        now - *full_since_);
    write_(LogLevel::kInfo, "journal_disk_has_room",
           {{"journal", directory_}, {"full_for_ms", full_for.count()}});
    full_since_.reset();
  }
}

}  // namespace timecache::server

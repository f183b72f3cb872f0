#include "server/process/disk_log.h"

#include <chrono>
#include <cstdint>
#include <utility>

namespace timecache::server {
namespace {

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

DiskLog::DiskLog(const Journal* journal, std::string directory, Write write)
    : journal_(journal),
      directory_(std::move(directory)),
      write_(std::move(write)) {}

void DiskLog::Look() {
  if (journal_ == nullptr || journal_->low_space() == (full_since_ms_ >= 0)) {
    return;
  }
  if (full_since_ms_ < 0) {
    full_since_ms_ = NowMs();
    const JournalStatistics statistics = journal_->statistics();
    write_(LogLevel::kWarning, "journal_disk_full",
           {{"journal", directory_},
            {"bytes", statistics.disk_bytes},
            {"reserve_bytes", statistics.reserve_bytes},
            {"message",
             "changes of durable namespaces are refused (DISK_FULL) until the "
             "disk has room for the reserve: make the volume larger, or remove "
             "files that are not the journal's"}});
  } else {
    write_(
        LogLevel::kInfo, "journal_disk_has_room",
        {{"journal", directory_}, {"full_for_ms", NowMs() - full_since_ms_}});
    full_since_ms_ = -1;
  }
}

}  // namespace timecache::server

#ifndef TIMECACHED_SERVER_LOG_LOCAL_LOCAL_JOURNAL_OPTIONS_H_
#define TIMECACHED_SERVER_LOG_LOCAL_LOCAL_JOURNAL_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "server/log/local/file_system.h"

namespace timecache::server {

struct LocalJournalOptions {
  // 1 to kPartitionsMax (1,024), fixed when the journal is created. 0 uses the
  // number of an existing journal.
  uint32_t partitions = 0;
  // A larger segment is followed by another. Trimming removes whole segments,
  // and each costs a sync of its directory.
  uint64_t segment_bytes = uint64_t{64} << 20;
  // From an ASYNC append to the start of its sync. Half of the 100 ms that a
  // power loss may lose: the other half is for the sync itself.
  std::chrono::microseconds sync_interval{50'000};
  // Room on the disk that is kept for when it is full: for waiting appends, and
  // for records that must still be written, such as time. 0: none; also where
  // the file system cannot reserve room.
  uint64_t reserve_bytes = 0;
  // Interval between checks for that room, while it is not held, and between
  // attempts to start a segment.
  std::chrono::microseconds reserve_interval{1'000'000};

  // Called once, on the committer's thread, when a write or a sync fails for
  // another reason than a full disk: the disk's content is unknown, so no more
  // is written. By default it prints the line and aborts.
  std::function<void(const std::string& line)> on_failure;

  // For tests. An empty boot id means the system's.
  std::string boot_id;
  FileSystem* files = FileSystem::Posix();
  std::function<std::chrono::steady_clock::time_point()> now =
      std::chrono::steady_clock::now;
  // Without a thread, RunOnce commits.
  bool own_thread = true;
};

// One append, at most.
inline constexpr uint64_t kAppendBytesMax = uint64_t{32} << 20;
// One group, unless a single append is larger.
inline constexpr uint64_t kGroupBytesMax = uint64_t{4} << 20;
// Most unsynced bytes of a full segment for which the next one starts between
// two groups.
inline constexpr uint64_t kRollUnsyncedBytesMax = uint64_t{2} << 20;

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_LOCAL_JOURNAL_OPTIONS_H_

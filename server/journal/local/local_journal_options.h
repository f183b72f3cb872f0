#ifndef TIMECACHED_SERVER_JOURNAL_LOCAL_LOCAL_JOURNAL_OPTIONS_H_
#define TIMECACHED_SERVER_JOURNAL_LOCAL_LOCAL_JOURNAL_OPTIONS_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "server/journal/local/file_system.h"

namespace timecache::server {

struct LocalJournalOptions {
  // 1 to kPartitionsMax (1,024), fixed when the journal is created. 0 takes
  // what an existing journal has.
  uint32_t partitions = 0;
  // A segment that is larger is followed by another. Trimming gives back whole
  // segments, and each costs a sync of its directory.
  uint64_t segment_bytes = uint64_t{64} << 20;
  // What all appends that wait may cost in memory: their bytes, and some 150 B
  // each; more are UNAVAILABLE.
  uint64_t pending_bytes_max = uint64_t{64} << 20;
  // From an ASYNC append to the start of its sync. Half of the 100 ms that a
  // power loss may take: the other half is for the sync itself.
  std::chrono::microseconds sync_interval{50'000};
  // Room on the disk that is kept for when it is full: what waits for the disk
  // then, and what must go on being written, such as time. 0: none.
  uint64_t reserve_bytes = 0;
  // From a look for that room, where it is gone, to the next one.
  std::chrono::microseconds reserve_interval{1'000'000};

  // Called once, on the committer's thread, when a write or a sync fails for
  // another reason than a full disk: what the disk has is unknown, so nothing
  // more is written. By default it prints the line and aborts.
  std::function<void(const std::string& line)> on_failure;

  // For tests. An empty boot id is what the system says.
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
// What waits while who appends commits, and how many groups it does before the
// journal's thread has to.
inline constexpr uint64_t kLedBytesMax = uint64_t{1} << 20;
inline constexpr int kLedGroupsMax = 16;
// What a segment that has its size may still have to sync, for the next one to
// start between two groups.
inline constexpr uint64_t kRollUnsyncedBytesMax = uint64_t{2} << 20;

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_LOCAL_LOCAL_JOURNAL_OPTIONS_H_

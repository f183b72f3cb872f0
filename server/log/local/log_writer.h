// The end of the log: where groups are written.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_LOG_WRITER_H_
#define TIMECACHED_SERVER_LOG_LOCAL_LOG_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "server/base/duration_histogram.h"
#include "server/log/local/disk_reserve.h"
#include "server/log/local/file_system.h"
#include "server/log/local/journal_directory.h"
#include "server/log/local/segment.h"
#include "server/log/local/unsynced_groups.h"

namespace timecache::server {

// Records of one partition that come next to each other.
struct LogAppend {
  uint32_t partition = 0;
  std::vector<std::string> records;
  uint64_t position = 0;  // of the first one, once written
};

// Groups that are written and not synced; a sync comes before there are more.
inline constexpr uint64_t kUnsyncedBytesMax = uint64_t{16} << 20;

// Writes groups to the last segment of a journal. An error leaves the log as it
// was: after RESOURCE_EXHAUSTED and UNAVAILABLE, any call may be retried. After
// any other error, the disk's content is unknown, and no more may be written.
//
// A group that was not written is cut off, so that a restart does not find it.
// If the disk has no room even for that (btrfs), its bytes stay behind the end
// until the next group is written over them, or another segment starts.
//
// Not thread-safe. Holds a group, kUnsyncedBytesMax, and what UnsyncedGroups
// keeps for later.
class LogWriter {
 public:
  // `files` and `lock`, which is the directory's, must outlive it.
  LogWriter(FileSystem* files, std::string directory, DirectoryLock* lock,
            const RecoveredJournal& recovered);

  // Before all other calls: opens the last segment.
  absl::Status Start();
  // Syncs, and continues with another segment: in the room of `reserve`, which
  // is held, or in a new file if it is null. After an error it continues with
  // the one that it has.
  absl::Status StartSegment(DiskReserve* reserve);
  // Syncs, and cuts off what may be behind the end: before a close.
  absl::Status Finish();

  // Writes the appends, in the order of their partitions, as one group.
  absl::Status WriteGroup(absl::Span<LogAppend* const> appends, bool sync);
  // Syncs all groups, if there is one that is not synced.
  absl::Status Sync();
  // The file, for a sync on another thread of the groups so far; null if there
  // is none that is not synced, or they must be written again first. Until
  // EndSync gets its result there may be no other call than WriteGroup, without
  // `sync` and while MayWrite.
  File* BeginSync();
  void EndSync(const absl::Status& status, int64_t took_us);
  // Whether a group can be written without a sync before it.
  bool MayWrite() const { return unsynced_.bytes() < kUnsyncedBytesMax; }

  const JournalIdentity& identity() const { return identity_; }
  const LogEnd& end() const { return end_; }
  // Of the last segment, if it has room on the disk for what is not written
  // yet, because it was a reserve: for so many bytes from its beginning on.
  // Otherwise 0.
  uint64_t room() const { return room_; }
  // One past the last position of each partition.
  const std::vector<uint64_t>& positions() const { return positions_; }
  uint64_t unsynced_bytes() const { return unsynced_.bytes(); }
  // The first group that is not synced.
  uint64_t synced_end() const {
    return unsynced_.empty() ? end_.next_group : first_unsynced_group_;
  }
  uint64_t syncs() const { return syncs_; }
  uint64_t sync_errors() const { return sync_errors_; }
  const DurationHistogram& sync_latency() const { return sync_latency_; }

 private:
  absl::Status SyncFile();
  // Syncs the name of a segment that was started.
  absl::Status SyncName();
  // Cuts off what is behind the end, on the disk, too.
  absl::Status CutOff();
  // After a group was not written.
  absl::Status Undo(absl::Status status);
  void FindRoom();
  absl::StatusOr<std::unique_ptr<File>> CreateSegment(DiskReserve* reserve,
                                                      const std::string& path,
                                                      absl::string_view header);
  // Rewrites the groups that a sync without room on the disk may have lost.
  absl::Status WriteUnsyncedAgain();

  FileSystem* const files_;
  const std::string directory_;
  DirectoryLock* const lock_;
  const JournalIdentity identity_;
  LogEnd end_;
  std::vector<uint64_t> positions_;
  std::unique_ptr<File> file_;
  uint64_t room_ = 0;
  // Whether the file's name may not survive a power loss, and whether it may
  // have bytes behind the end, on the disk.
  bool name_unsynced_ = false;
  bool may_overhang_ = false;
  GroupEncoder encoder_;
  // The groups before the end that are not synced.
  UnsyncedGroups unsynced_;
  uint64_t first_unsynced_group_ = 0;
  bool unsynced_may_be_lost_ = false;
  // Of these, those that a started sync covers, and the group after them.
  size_t syncing_groups_ = 0;
  uint64_t syncing_end_ = 0;
  uint64_t syncs_ = 0;
  uint64_t sync_errors_ = 0;
  DurationHistogram sync_latency_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_LOG_WRITER_H_

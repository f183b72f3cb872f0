// The files of a journal's directory, and how it is opened.
//
//   FORMAT                 version, partitions and id, as text
//   LOCK                   locked by the server that has it open, as is the
//                          directory itself (FileSystem::Lock)
//   TRIM                   the first position of each partition
//   END                    after an orderly close: where the log ends
//   BOOT                   the id of the machine's boot in which it was
//                          recovered last: no earlier boot has taken records
//                          with it that this one misses
//   CLOCK                  how far its server's clock was behind the machine's
//   COPY                   empty: its log may go on elsewhere, too
//   RESERVE                room for when the disk is full: then it becomes the
//                          next segment (disk_reserve.h)
//   RESTORING              empty: the others are being put there, see
//                          journal_copy.h
//   00000000000000000001   segments, numbered without gaps (segment.h)

#ifndef TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_DIRECTORY_H_
#define TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_DIRECTORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/log/local/file_system.h"
#include "server/log/local/segment.h"

namespace timecache::server {

inline constexpr char kFormatFile[] = "FORMAT";
inline constexpr char kLockFile[] = "LOCK";
inline constexpr char kTrimFile[] = "TRIM";
inline constexpr char kEndFile[] = "END";
inline constexpr char kBootFile[] = "BOOT";
inline constexpr char kClockFile[] = "CLOCK";
inline constexpr char kCopyFile[] = "COPY";
inline constexpr char kReserveFile[] = "RESERVE";
inline constexpr char kRestoringFile[] = "RESTORING";
inline constexpr size_t kSegmentNameDigits = 20;

// A random id.
std::string NewJournalId();

std::string SegmentPath(const std::string& directory, uint64_t number);
// The numbers of the segments in the directory, ascending.
absl::StatusOr<std::vector<uint64_t>> ListSegments(
    FileSystem* files, const std::string& directory);

// FAILED_PRECONDITION: a newer format. DATA_LOSS: damaged. NOT_FOUND: missing.
absl::StatusOr<JournalIdentity> ReadFormat(FileSystem* files,
                                           const std::string& directory);
absl::Status WriteFormat(FileSystem* files, const std::string& directory,
                         const JournalIdentity& identity);
std::string EncodeFormatFile(const JournalIdentity& identity);

// In microseconds; 0 if it was not behind, or there is no file, as earlier
// versions left it. DATA_LOSS: damaged.
absl::StatusOr<int64_t> ReadClockBehind(FileSystem* files,
                                        const std::string& directory);
absl::Status WriteClockBehind(FileSystem* files, const std::string& directory,
                              int64_t behind_us);

// The boot of the machine that last wrote the journal: unsynced data survives a
// crash of the process, and is lost with power.
//
// The system's random boot id; empty if it has none.
std::string MachineBootId();
// The last id of WriteBoot; empty if the directory has none, as earlier
// versions left it.
absl::StatusOr<std::string> ReadBoot(FileSystem* files,
                                     const std::string& directory);
absl::Status WriteBoot(FileSystem* files, const std::string& directory,
                       const std::string& boot_id);

// A copy's log and that of what it was copied from have a part in common, and
// then each goes on by itself. The first process that opens a copy must give it
// a new identity (RecoveryOptions::copied), and then removes the mark.
absl::Status MarkAsCopy(FileSystem* files, const std::string& directory);
absl::StatusOr<bool> IsMarkedAsCopy(FileSystem* files,
                                    const std::string& directory);
absl::Status UnmarkAsCopy(FileSystem* files, const std::string& directory);

// `first` has a position for each partition.
struct TrimPositions {
  uint64_t sequence = 0;  // of the write that stored them
  std::vector<uint64_t> first;
};
absl::StatusOr<TrimPositions> ReadTrim(FileSystem* files,
                                       const std::string& directory,
                                       const JournalIdentity& identity);
// The file, with both of its slots alike.
std::string EncodeTrimFile(const JournalIdentity& identity,
                           const TrimPositions& trim);
// Creates the file.
absl::Status CreateTrim(FileSystem* files, const std::string& directory,
                        const JournalIdentity& identity,
                        const TrimPositions& trim);
// Overwrites the older of the file's two slots and syncs it: needs no room on
// the disk, and a crash leaves one of the two.
absl::Status OverwriteTrim(FileSystem* files, const std::string& directory,
                           const JournalIdentity& identity,
                           const TrimPositions& trim);

// Where the log ended when it was closed.
struct LogEnd {
  uint64_t segment = 0;
  uint64_t bytes = 0;  // of this segment
  uint64_t next_group = 0;
  bool operator==(const LogEnd&) const = default;
};
absl::StatusOr<LogEnd> ReadEnd(FileSystem* files, const std::string& directory);
absl::Status WriteEnd(FileSystem* files, const std::string& directory,
                      const LogEnd& end);
std::string EncodeEndFile(const LogEnd& end);

// One segment as it is known without reading it again.
struct SegmentState {
  uint64_t number = 0;
  uint64_t bytes = 0;
  std::vector<uint64_t> bases;  // SegmentHeader::bases
};

// The result of recovery.
struct RecoveredJournal {
  JournalIdentity identity;
  std::vector<SegmentState> segments;  // oldest first, one or more
  TrimPositions trim;
  std::vector<uint64_t> ends;  // one past the last position
  uint64_t next_group = 0;
  bool closed = false;  // in order: there is END
  // Of the last segment, up to where the log is known to be on the disk.
  uint64_t synced_bytes = 0;
  // Trimmed segments of which a power loss has undone the removal.
  std::vector<uint64_t> leftovers;
};

// An empty journal. A crash leaves a directory that is created again.
absl::Status CreateJournal(FileSystem* files, const std::string& directory,
                           uint32_t partitions);

// Finds the segments and the end of the log; changes nothing. Reads the headers
// of all segments and the last segment whole.
absl::StatusOr<RecoveredJournal> FindJournal(FileSystem* files,
                                             const std::string& directory);
// As FindJournal; then cuts what is torn at the end, and writes and syncs what
// may not be on the disk, so that what was read is not lost later. The caller
// has the lock.
absl::StatusOr<RecoveredJournal> RecoverJournal(FileSystem* files,
                                                const std::string& directory);

// Follows the positions of groups that are read in order: they are dense.
class PositionFollower {
 public:
  PositionFollower(const JournalIdentity& identity,
                   std::vector<uint64_t> positions, uint64_t group)
      : identity_(identity), next_(std::move(positions)), next_group_(group) {}

  // True if the group is the next one and its sections of `partitions` (those
  // that are true, or all if empty) are intact; then it counts. Otherwise
  // `why()` says what is wrong.
  bool Follow(const Group& group, const std::vector<bool>& partitions = {});
  const std::string& why() const { return why_; }

  const std::vector<uint64_t>& positions() const { return next_; }
  uint64_t group() const { return next_group_; }

 private:
  const JournalIdentity& identity_;
  std::vector<uint64_t> next_;
  uint64_t next_group_;
  std::string why_;
};

// The remedy for damage: the end of each error about damage.
absl::string_view JournalAdvice();

// DATA_LOSS that names the file, its problem, and a remedy.
absl::Status FileDamage(const std::string& path, absl::string_view what);
// DATA_LOSS that names the file, the byte, its problem, and a remedy.
absl::Status JournalDamage(const std::string& path, uint64_t offset,
                           uint64_t file_bytes, absl::string_view what);

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_DIRECTORY_H_

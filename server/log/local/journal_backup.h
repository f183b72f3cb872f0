// A journal as it was at one moment, while the journal keeps changing.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_BACKUP_H_
#define TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_BACKUP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/log/local/file_system.h"
#include "server/log/local/journal_directory.h"

namespace timecache::server {

// The files of a backup behind its segments: their names and what they hold. FORMAT
// is the last one: a directory without it is not a journal.
std::vector<std::pair<std::string, std::string>> DescribeBackup(
    const JournalIdentity& identity, const TrimPositions& trim,
    const LogEnd& end);

// The bytes of an archive (backup_archive.h) of the files that
// LocalJournal::OpenBackup has found, read from the journal's own files:
// nothing is copied on this machine. A segment stays until it has been read,
// even if it is trimmed meanwhile; unread segments are released when this is
// destroyed.
//
// Not thread-safe. Holds an open file.
class JournalBackup {
 public:
  // Segments before this one are no longer needed; kNone at the end.
  using Release = std::function<void(uint64_t segment)>;
  static constexpr uint64_t kNone = UINT64_MAX;

  // For LocalJournal. `segments`: their numbers and how many bytes of each; the
  // first one is held.
  struct Contents {
    std::deque<SegmentState> segments;
    JournalIdentity identity;
    TrimPositions trim;
    LogEnd end;
  };
  JournalBackup(FileSystem* files, std::string directory,
                const Contents& contents, Release release);
  ~JournalBackup();
  JournalBackup(const JournalBackup&) = delete;
  JournalBackup& operator=(const JournalBackup&) = delete;

  // Of the archive.
  uint64_t total_bytes() const { return total_bytes_; }
  // The next bytes of it, at most so many; none at its end. DATA_LOSS: a file
  // is damaged. Others: errors of files.
  absl::StatusOr<std::string> Read(size_t bytes);

 private:
  // A file of the archive.
  struct Part {
    std::string name;
    uint64_t bytes = 0;
    // What it holds; of a segment, that is in the file.
    std::string contents;
    uint64_t segment = 0;
  };

  absl::Status Begin(const Part& part, std::string* to);
  absl::Status AddFrom(const Part& part, size_t bytes, std::string* to);

  FileSystem* const files_;
  const std::string directory_;
  const Release release_;
  std::vector<Part> parts_;
  uint64_t total_bytes_ = 0;
  int64_t time_s_ = 0;

  size_t part_ = 0;
  uint64_t offset_ = 0;  // in it
  bool begun_ = false;
  bool ended_ = false;
  std::unique_ptr<File> file_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_JOURNAL_BACKUP_H_

// A backup as one stream of bytes: a tar archive (POSIX ustar) of the files of
// a journal, so that it can be listed and unpacked with tar, too.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_BACKUP_ARCHIVE_H_
#define TIMECACHED_SERVER_LOG_LOCAL_BACKUP_ARCHIVE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace timecache::server {

inline constexpr size_t kArchiveBlockBytes = 512;

// The header before the bytes of a file. `bytes` must be below 8 GiB: segments
// are. `time_s` is in seconds since the Unix epoch.
std::string ArchiveHeader(absl::string_view name, uint64_t bytes,
                          int64_t time_s);
// The padding after them: zeros up to a whole block.
std::string ArchivePadding(uint64_t bytes);
// The end of the archive, after all files.
std::string ArchiveEnd();

// Receives the files of an archive, one after the other. The names are without
// directories.
class ArchiveSink {
 public:
  virtual ~ArchiveSink() = default;
  virtual absl::Status BeginFile(const std::string& name, uint64_t bytes) = 0;
  virtual absl::Status AddBytes(absl::string_view bytes) = 0;
  virtual absl::Status EndFile() = 0;
};

// Reads an archive in pieces of any size. Takes what ArchiveHeader writes, and
// what GNU tar makes of the same files; directories and extended headers are
// passed over. Holds a block. Not thread-safe.
class ArchiveReader {
 public:
  // Not owned; must outlive this.
  explicit ArchiveReader(ArchiveSink* sink) : sink_(*sink) {}

  // INVALID_ARGUMENT: no such archive, or one that is damaged. Others: of the
  // sink. After an error, nothing more may be added.
  absl::Status Add(absl::string_view bytes);
  // All bytes were added. DATA_LOSS: the archive is incomplete.
  absl::Status Finish() const;

 private:
  enum class State { kHeader, kFile, kSkipped, kPadding, kEnd };

  absl::Status AddBlock();

  ArchiveSink& sink_;
  State state_ = State::kHeader;
  // A header so far.
  std::string block_;
  // Of the file, and of its padding.
  uint64_t left_ = 0;
  uint64_t padding_ = 0;
  // Bytes before the current piece.
  uint64_t offset_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_BACKUP_ARCHIVE_H_

// Room on the journal's disk for records that must be written when it is full.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_DISK_RESERVE_H_
#define TIMECACHED_SERVER_LOG_LOCAL_DISK_RESERVE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/log/local/file_system.h"

namespace timecache::server {

// What a file system may round up, or count for its own description of a file.
inline constexpr uint64_t kRoundedBytesMax = uint64_t{1} << 20;

// An empty file that has room on the disk. A writer that finds the disk full
// makes it the next segment: so at no time can others take the room. Its
// descriptor stays open, because there may be none when it is needed.
//
// Not thread-safe.
class DiskReserve {
 public:
  // `files` must outlive it.
  DiskReserve(FileSystem* files, const std::string& directory);

  // Takes so much room at least, with what it has; the first call keeps what an
  // earlier process has left. 0: none is needed. RESOURCE_EXHAUSTED: the disk
  // has less; then it has what it had before. UNIMPLEMENTED: the file system
  // cannot reserve room.
  absl::Status Take(uint64_t bytes);
  bool held() const { return file_ != nullptr; }
  uint64_t bytes() const { return bytes_; }

  // While it is held: the file, to write a segment's header to, and its path,
  // to rename it.
  File* file() { return file_.get(); }
  const std::string& path() const { return path_; }
  // After it was renamed. Then it is not held.
  std::unique_ptr<File> Give();
  // Frees the room for all.
  void Free();

 private:
  // Opens the file, without room that is not wanted.
  absl::Status Open(uint64_t bytes);

  FileSystem* const files_;
  const std::string path_;
  std::unique_ptr<File> file_;
  uint64_t bytes_ = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_DISK_RESERVE_H_

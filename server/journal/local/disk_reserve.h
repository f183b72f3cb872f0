// Room on the journal's disk for records that must be written when it is full.

#ifndef TIMECACHED_SERVER_JOURNAL_LOCAL_DISK_RESERVE_H_
#define TIMECACHED_SERVER_JOURNAL_LOCAL_DISK_RESERVE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/journal/local/file_system.h"

namespace timecache::server {

// A file that takes up room and holds nothing. A writer that finds the disk
// full removes it and writes again.
//
// Not thread-safe.
class DiskReserve {
 public:
  // `files` must outlive it. Of 0 bytes it is never held.
  DiskReserve(FileSystem* files, const std::string& directory, uint64_t bytes);

  // Takes up the room, including what an earlier process has left of it.
  // RESOURCE_EXHAUSTED: the disk has less; then nothing is taken.
  absl::Status Take();
  // Frees the room for the next write. False if it is not held.
  bool Give();

 private:
  FileSystem* const files_;
  const std::string path_;
  const uint64_t bytes_;
  bool held_ = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_LOCAL_DISK_RESERVE_H_

// Room on the journal's disk for what must be written when it is full.

#ifndef TIMECACHED_SERVER_JOURNAL_LOCAL_DISK_RESERVE_H_
#define TIMECACHED_SERVER_JOURNAL_LOCAL_DISK_RESERVE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "server/journal/local/file_system.h"

namespace timecache::server {

// A file that takes up room and holds nothing. Whoever finds the disk full
// removes it and writes again.
//
// Not thread-safe.
class DiskReserve {
 public:
  // `files` must outlive it. Of 0 bytes it is never held.
  DiskReserve(FileSystem* files, const std::string& directory, uint64_t bytes);

  // Takes up the room, also what an earlier process has left of it.
  // RESOURCE_EXHAUSTED: the disk has less; then nothing is taken.
  absl::Status Take();
  // Gives the room to whoever writes next. False if it is not held.
  bool Give();

 private:
  FileSystem* const files_;
  const std::string path_;
  const uint64_t bytes_;
  bool held_ = false;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_JOURNAL_LOCAL_DISK_RESERVE_H_

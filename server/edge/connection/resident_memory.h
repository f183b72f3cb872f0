// The resident memory of the process.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_RESIDENT_MEMORY_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_RESIDENT_MEMORY_H_

#include <cstdint>

namespace timecache::server {

// Costs a file descriptor, so that it works also where there is none left, and
// a microsecond for a look. Thread-safe.
class ResidentMemory {
 public:
  ResidentMemory();
  ~ResidentMemory();
  ResidentMemory(const ResidentMemory&) = delete;
  ResidentMemory& operator=(const ResidentMemory&) = delete;

  // Memory that is not swapped or returned, by the kernel's account, which may
  // be late by some hundred KiB for each thread. 0 if it cannot be read.
  int64_t Bytes() const;

 private:
  const int fd_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_RESIDENT_MEMORY_H_

// Memory that calls have used goes back to the system.

#ifndef TIMECACHED_SERVER_PROCESS_HEAP_H_
#define TIMECACHED_SERVER_PROCESS_HEAP_H_

#include <chrono>
#include <cstddef>

namespace timecache::server {

// How often it is worth a look.
inline constexpr std::chrono::seconds kHeapTrimInterval{5};

// So much of the heap may stay free, and a quarter of what is in use.
inline constexpr size_t kMaxIdleHeapBytes = size_t{64} << 20;

// Gives free memory of the C library's heap back to the system, if there is
// more than may stay, and says whether it has. The library keeps what a burst
// of calls has needed: two seconds of an attack (streams that are opened and
// reset) would else leave a process that is larger by gigabytes for good. (What
// entries live in comes from elsewhere, see BlockPool.)
//
// Thread-safe. A look takes microseconds; a trim holds up who allocates
// meanwhile in the same arena.
bool TrimHeap();

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_PROCESS_HEAP_H_

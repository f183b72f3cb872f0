// Returns memory that calls have used to the system.

#ifndef TIMECACHED_SERVER_BASE_HEAP_H_
#define TIMECACHED_SERVER_BASE_HEAP_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

namespace timecache::server {

// How often to check.
inline constexpr std::chrono::seconds kHeapTrimInterval{5};

// This much of the heap may stay free, plus a quarter of the memory in use.
inline constexpr size_t kMaxIdleHeapBytes = size_t{64} << 20;

// Returns free memory of the C library's heap to the system, if there is more
// than may stay; returns whether it did. The library keeps the memory of a
// burst of calls: two seconds of an attack (streams that are opened and reset)
// would otherwise leave the process larger by gigabytes permanently. (Entries'
// memory comes from BlockPool.)
//
// Thread-safe. Goes over all free pieces, to count them and to trim: some 0.2
// us for each (145 ms for 800,000), and blocks threads that meanwhile allocate
// in the same arena.
bool TrimHeap();

// Calls it, with pauses a thousand times as long as the last call took: a heap
// in many pieces is looked at less often.
class HeapTrimmer {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit HeapTrimmer(
      std::function<void()> trim = TrimHeap,
      std::function<Time()> now = std::chrono::steady_clock::now)
      : trim_(std::move(trim)), now_(std::move(now)) {}

  // To be called by one thread, each kHeapTrimInterval.
  void Look();

 private:
  const std::function<void()> trim_;
  const std::function<Time()> now_;
  Time next_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_BASE_HEAP_H_

// Memory that calls have used goes back to the system.

#ifndef TIMECACHED_SERVER_PROCESS_HEAP_TRIMMER_H_
#define TIMECACHED_SERVER_PROCESS_HEAP_TRIMMER_H_

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>

namespace timecache {

// Gives free memory of the C library's heap back to the system, which keeps
// what a burst of calls has needed: two seconds of an attack (streams that are
// opened and reset) would else leave a process that is larger by gigabytes for
// good. (What entries live in comes from elsewhere, see BlockPool.)
//
// Thread-safe. Costs a thread that looks every kIntervalMs, for microseconds; a
// trim holds up who allocates meanwhile in the same arena.
class HeapTrimmer {
 public:
  static constexpr int kIntervalMs = 5'000;
  // So much may stay free, and a quarter of what is in use.
  static constexpr size_t kMaxIdleBytes = size_t{64} << 20;

  HeapTrimmer();
  ~HeapTrimmer();
  HeapTrimmer(const HeapTrimmer&) = delete;
  HeapTrimmer& operator=(const HeapTrimmer&) = delete;

  // Looks now; returns whether it has trimmed.
  static bool Look();

 private:
  void Run();

  std::mutex mu_;
  std::condition_variable stop_;
  bool stopping_ = false;  // Under mu_.
  std::thread thread_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_PROCESS_HEAP_TRIMMER_H_

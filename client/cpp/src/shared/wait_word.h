// Where threads wait until another one has changed a word. Internal to the
// client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_SHARED_WAIT_WORD_H_
#define TIMECACHED_CLIENT_CPP_SRC_SHARED_WAIT_WORD_H_

#include <atomic>
#include <cstdint>

#include "client/cpp/src/rpc/steady_time.h"

namespace timecache {

// A counter of changes. A thread reads it, looks whether what it waits for is so,
// and waits while the counter is as it was. Thread-safe. Unlike
// std::atomic::wait it has a time limit and does not yield first, which costs
// more than the wait where many threads do it; unlike a condition variable it
// wakes any number of threads by one system call, and they take no lock.
class WaitWord {
 public:
  uint32_t Read() const { return word_.load(std::memory_order_acquire); }
  // False: the time was up first. May return early.
  bool Wait(uint32_t seen, SteadyTime deadline);
  // Counts, and wakes as many as wait, or one.
  void ChangeForAll();
  void ChangeForOne();
  // Counts alone: no thread waits.
  void Change() { word_.fetch_add(1, std::memory_order_release); }

 private:
  std::atomic<uint32_t> word_{0};
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_SHARED_WAIT_WORD_H_

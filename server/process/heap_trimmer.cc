#include "server/process/heap_trimmer.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>

namespace timecache {

HeapTrimmer::HeapTrimmer() : thread_([this] { Run(); }) {}

HeapTrimmer::~HeapTrimmer() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
}

bool HeapTrimmer::Look() {
  const struct mallinfo2 heap = mallinfo2();
  if (heap.fordblks <= std::max(kMaxIdleBytes, heap.uordblks / 4)) return false;
  return malloc_trim(0) != 0;
}

void HeapTrimmer::Run() {
  std::unique_lock<std::mutex> lock(mu_);
  while (!stopping_) {
    stop_.wait_for(lock, std::chrono::milliseconds(kIntervalMs));
    if (stopping_) return;
    lock.unlock();
    Look();
    lock.lock();
  }
}

}  // namespace timecache

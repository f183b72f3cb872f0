#include "server/base/heap.h"

#include <malloc.h>

#include <algorithm>

namespace timecache::server {

bool TrimHeap() {
  const struct mallinfo2 heap = mallinfo2();
  const size_t most_idle = std::max(kMaxIdleHeapBytes, heap.uordblks / 4);
  return heap.fordblks > most_idle && malloc_trim(0) != 0;
}

void HeapTrimmer::Look() {
  constexpr int kPausesPerLook = 1000;
  const Time began = now_();
  if (began < next_) return;
  trim_();
  const Time ended = now_();
  next_ = ended + kPausesPerLook * (ended - began);
}

}  // namespace timecache::server

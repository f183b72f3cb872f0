#include "server/engine/map_bin.h"

#include <utility>

namespace timecache::server {

void MapBin::Free(std::unique_ptr<TimeCacheMap> map) {
  if (map->memory_bytes() < kLargeBytes) return;
  absl::MutexLock lock(&mu_);
  if (closed_) return;
  maps_.push_back(std::move(map));
  if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  wake_.Signal();
}

void MapBin::Close() {
  std::thread thread;
  {
    absl::MutexLock lock(&mu_);
    closed_ = true;
    thread = std::move(thread_);
    wake_.Signal();
  }
  if (thread.joinable()) thread.join();
}

void MapBin::Run() {
  absl::MutexLock lock(&mu_);
  for (;;) {
    while (maps_.empty() && !closed_) wake_.Wait(&mu_);
    std::vector<std::unique_ptr<TimeCacheMap>> maps;
    maps.swap(maps_);
    if (maps.empty()) return;
    mu_.Unlock();
    maps.clear();
    mu_.Lock();
  }
}

}  // namespace timecache::server

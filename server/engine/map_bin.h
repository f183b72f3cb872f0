// Where deleted maps are freed.

#ifndef TIMECACHED_SERVER_ENGINE_MAP_BIN_H_
#define TIMECACHED_SERVER_ENGINE_MAP_BIN_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"
#include "server/engine/map/time_cache_map.h"

namespace timecache::server {

// Frees maps: those with much memory on a thread of its own, which it starts
// for the first of them. To free a million buckets takes half a second, and the
// last to hold a map is any thread that a call runs on. Thread-safe.
class MapBin {
 public:
  // Maps with less are freed at once.
  static constexpr int64_t kLargeBytes = int64_t{1} << 20;

  MapBin() = default;
  ~MapBin() { Close(); }
  MapBin(const MapBin&) = delete;
  MapBin& operator=(const MapBin&) = delete;

  void Free(std::unique_ptr<TimeCacheMap> map) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until all are freed; later ones are freed at once.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  absl::Mutex mu_;
  SteadyCondVar wake_;
  std::vector<std::unique_ptr<TimeCacheMap>> maps_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_MAP_BIN_H_

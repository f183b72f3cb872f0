// The last calls that took long, for operators.

#ifndef TIMECACHED_SERVER_OPS_SLOW_CALLS_H_
#define TIMECACHED_SERVER_OPS_SLOW_CALLS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/api/call_observer.h"

namespace timecache::server {

struct SlowCall {
  int64_t time_us = 0;
  // "timecache.v1.TimeCacheService/Put"
  std::string method;
  std::string name;
  int64_t took_us = 0;
  int code = 0;
  uint64_t operations = 0;
  std::string principal;
  std::string peer;
  std::string request_id;
};

// The last kMost of them. Thread-safe. Add costs some copies of strings, each
// at most kMaxTextBytes long: 512 KiB in all at most.
class SlowCalls {
 public:
  static constexpr size_t kMost = 256;
  static constexpr size_t kMaxTextBytes = 256;

  void Add(const CallRecord& record, int64_t now_us) ABSL_LOCKS_EXCLUDED(mu_);
  // The latest first.
  std::vector<SlowCall> List() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  std::array<SlowCall, kMost> calls_ ABSL_GUARDED_BY(mu_);
  // How many were added, ever.
  uint64_t added_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_SLOW_CALLS_H_

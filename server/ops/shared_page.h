// A page that is expensive to make, made once for all concurrent requests.

#ifndef TIMECACHED_SERVER_OPS_SHARED_PAGE_H_
#define TIMECACHED_SERVER_OPS_SHARED_PAGE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"

namespace timecache::server {

// After each run it rests for kRest times the duration of that run, kMaxRest at
// most: however often it is requested, a page that is made within 0.2 s takes
// at most a tenth of a core. A page that is quick to make is always available
// at once.
//
// Thread-safe.
class SharedPage {
 public:
  using Page = std::shared_ptr<const std::string>;

  static constexpr int kRest = 9;
  static constexpr std::chrono::milliseconds kMaxRest{2'000};

  // `make` is called by one requesting thread at a time.
  explicit SharedPage(std::function<std::string()> make)
      : make_(std::move(make)) {}

  // A page whose making started after this call: it shows the state of that
  // time. Waits while it is made, and for a rest before. Null after Stop.
  Page Next() ABSL_LOCKS_EXCLUDED(mu_);
  // The last that was made, at once; null before the first.
  Page Last() const ABSL_LOCKS_EXCLUDED(mu_);
  // All waiting calls return, and no more pages are made.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  static std::chrono::nanoseconds RestAfter(std::chrono::nanoseconds took);

 private:
  void Make() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<std::string()> make_;
  mutable absl::Mutex mu_;
  SteadyCondVar changed_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool making_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t made_ ABSL_GUARDED_BY(mu_) = 0;
  Page page_ ABSL_GUARDED_BY(mu_);
  std::chrono::steady_clock::time_point rests_until_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_SHARED_PAGE_H_

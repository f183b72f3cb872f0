// A page that is dear to make, made once for all who ask for it at a time.

#ifndef TIMECACHED_SERVER_OBSERVABILITY_SHARED_PAGE_H_
#define TIMECACHED_SERVER_OBSERVABILITY_SHARED_PAGE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/common/steady_cond_var.h"

namespace timecache::server {

// After each making it rests for kRest times as long as that took, kMaxRest at
// most: however often it is asked for, a page that is made within 0.2 s takes
// at most a tenth of a core. One that is quick to make is always there at once.
//
// Thread-safe.
class SharedPage {
 public:
  using Page = std::shared_ptr<const std::string>;

  static constexpr int kRest = 9;
  static constexpr std::chrono::milliseconds kMaxRest{2'000};

  // `make` is called by one thread at a time, whichever asks.
  explicit SharedPage(std::function<std::string()> make)
      : make_(std::move(make)) {}

  // A page whose making began after this was called: it says what was so then.
  // Waits while it is made, and for a rest before. Null after Stop.
  Page Next() ABSL_LOCKS_EXCLUDED(mu_);
  // The last that was made, at once; null before the first.
  Page Last() const ABSL_LOCKS_EXCLUDED(mu_);
  // All that wait return, and no page is made any more.
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

#endif  // TIMECACHED_SERVER_OBSERVABILITY_SHARED_PAGE_H_

// Syncs a file, and more, beside the thread that writes it.

#ifndef TIMECACHED_SERVER_LOG_LOCAL_BACKGROUND_SYNC_H_
#define TIMECACHED_SERVER_LOG_LOCAL_BACKGROUND_SYNC_H_

#include <functional>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"

namespace timecache::server {

// One sync at a time, on a thread of its own. All calls come from one thread.
class BackgroundSync {
 public:
  // `ended` is called on the thread, and under no lock, after each sync.
  explicit BackgroundSync(std::function<void()> ended);
  // Waits for a sync in progress.
  ~BackgroundSync();
  BackgroundSync(const BackgroundSync&) = delete;
  BackgroundSync& operator=(const BackgroundSync&) = delete;

  // Starts `sync`. None must be in progress.
  void Begin(absl::AnyInvocable<absl::Status()> sync) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether a sync was started whose result End has not returned.
  bool under_way() const { return under_way_; }
  // The result of the started sync, once; none if there is none, or if it has
  // not ended, which `wait` waits for.
  std::optional<absl::Status> End(bool wait) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mu_);

  const std::function<void()> ended_;
  // The caller's.
  bool under_way_ = false;

  absl::Mutex mu_;
  timecache::SteadyCondVar change_;
  absl::AnyInvocable<absl::Status()> sync_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Status> result_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_LOG_LOCAL_BACKGROUND_SYNC_H_

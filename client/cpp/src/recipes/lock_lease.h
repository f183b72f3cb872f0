// What a Lock knows of its lease, and the report of its loss. Internal to the
// client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RECIPES_LOCK_LEASE_H_
#define TIMECACHED_CLIENT_CPP_SRC_RECIPES_LOCK_LEASE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/cpp/src/rpc/steady_time.h"
#include "timecache/recipes/lock.h"

namespace timecache {

// Thread-safe. Has a thread from the first lease on, if there is an `on_lost`.
class Lock::Lease {
 public:
  explicit Lease(std::function<void()> on_lost);
  // Calls `on_lost` no more, when it returns.
  ~Lease() ABSL_LOCKS_EXCLUDED(mu_);

  std::optional<uint64_t> token() const ABSL_LOCKS_EXCLUDED(mu_);
  // Zero without a lease.
  absl::Duration remaining() const ABSL_LOCKS_EXCLUDED(mu_);

  void Begin(uint64_t token, SteadyTime safe_until) ABSL_LOCKS_EXCLUDED(mu_);
  // False: it has ended meanwhile.
  bool Extend(SteadyTime safe_until) ABSL_LOCKS_EXCLUDED(mu_);
  // From now on its end is no loss.
  void GiveUp() ABSL_LOCKS_EXCLUDED(mu_);
  void End() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Watch();
  // False: this is to be destroyed.
  bool AwaitLoss() ABSL_LOCKS_EXCLUDED(mu_);
  // Whether that is a loss.
  bool Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::function<void()> on_lost_;
  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  std::optional<uint64_t> token_ ABSL_GUARDED_BY(mu_);
  SteadyTime safe_until_ ABSL_GUARDED_BY(mu_);
  bool is_watched_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RECIPES_LOCK_LEASE_H_

// Whether the process serves, for probes and metrics.

#ifndef TIMECACHED_SERVER_OPS_READINESS_H_
#define TIMECACHED_SERVER_OPS_READINESS_H_

#include <atomic>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// Thread-safe, an atomic load or store each, but for the standby's owner.
class Readiness {
 public:
  // In this order, each once; a node of a cluster is kStandby and kServing in
  // turns.
  enum class State { kStarting, kStandby, kServing, kDraining };

  void Set(State state) { state_.store(state, std::memory_order_release); }
  State state() const { return state_.load(std::memory_order_acquire); }

  // How much of the journal has been read, while it starts; -1: there is none,
  // or none yet.
  void SetRecovered(int percent) {
    recovered_.store(percent, std::memory_order_relaxed);
  }
  int recovered() const { return recovered_.load(std::memory_order_relaxed); }

  // Which node serves while this one is kStandby; "": none.
  void SetOwner(std::string node) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    owner_ = std::move(node);
  }
  std::string owner() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return owner_;
  }

 private:
  std::atomic<State> state_{State::kStarting};
  std::atomic<int> recovered_{-1};
  mutable absl::Mutex mu_;
  std::string owner_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_READINESS_H_

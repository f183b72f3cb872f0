// Whether the process serves, for probes and metrics.

#ifndef TIMECACHED_SERVER_OPS_READINESS_H_
#define TIMECACHED_SERVER_OPS_READINESS_H_

#include <atomic>

namespace timecache::server {

// Thread-safe, an atomic load or store each.
class Readiness {
 public:
  // In this order, each once.
  enum class State { kStarting, kServing, kDraining };

  void Set(State state) { state_.store(state, std::memory_order_release); }
  State state() const { return state_.load(std::memory_order_acquire); }

  // How much of the journal has been read, while it starts; -1: there is none,
  // or none yet.
  void SetRecovered(int percent) {
    recovered_.store(percent, std::memory_order_relaxed);
  }
  int recovered() const { return recovered_.load(std::memory_order_relaxed); }

 private:
  std::atomic<State> state_{State::kStarting};
  std::atomic<int> recovered_{-1};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_OPS_READINESS_H_

// What the calls on one connection are, for operators.

#ifndef TIMECACHED_SERVER_EDGE_RESPONSE_CONNECTION_USE_H_
#define TIMECACHED_SERVER_EDGE_RESPONSE_CONNECTION_USE_H_

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// Counts the calls and streams of a connection, and knows who made one of the
// last of them. A call costs an addition as it begins, another as it ends, and
// reads a flag: who called is noted once after each Look, not for each call.
//
// Thread-safe.
class ConnectionUse {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  struct Caller {
    std::string principal;
    std::string user_agent;
  };

  ConnectionUse() : opened_at_(std::chrono::steady_clock::now()) {}
  ConnectionUse(const ConnectionUse&) = delete;
  ConnectionUse& operator=(const ConnectionUse&) = delete;

  SteadyTime opened_at() const { return opened_at_; }

  // Returns how many were open before.
  int64_t BeginCall() {
    return static_cast<int64_t>(begun_.fetch_add(1, std::memory_order_relaxed) -
                                ended_.load(std::memory_order_relaxed));
  }
  void EndCall() { ended_.fetch_add(1, std::memory_order_relaxed); }

  // Others, within a stream, that have begun and ended.
  void AddCalls(uint64_t calls) {
    // In this order, so that they never seem to be open.
    ended_.fetch_add(calls, std::memory_order_relaxed);
    begun_.fetch_add(calls, std::memory_order_release);
  }

  // Calls that have begun; those that have not ended.
  uint64_t calls() const { return begun_.load(std::memory_order_relaxed); }
  int64_t open_calls() const {
    const uint64_t ended = ended_.load(std::memory_order_acquire);
    return std::max<int64_t>(static_cast<int64_t>(calls() - ended), 0);
  }

  // Whether the caller is to be noted.
  bool wants_caller() const {
    return wants_caller_.load(std::memory_order_relaxed);
  }
  void Note(Caller caller) ABSL_LOCKS_EXCLUDED(mu_) {
    wants_caller_.store(false, std::memory_order_relaxed);
    absl::MutexLock lock(&mu_);
    caller_ = std::move(caller);
  }
  Caller caller() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return caller_;
  }

  // Dates what has happened since the last Look, and asks for its caller. By
  // one thread, a few times a second.
  void Look(SteadyTime now) {
    const uint64_t changes = calls() + ended_.load(std::memory_order_relaxed);
    if (changes == std::exchange(seen_, changes)) return;
    used_at_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    wants_caller_.store(true, std::memory_order_relaxed);
  }
  // When a call began or ended last, as of the last Look; none ever: unset.
  std::optional<SteadyTime> used_at() const {
    const int64_t at = used_at_.load(std::memory_order_relaxed);
    if (at == 0) return std::nullopt;
    return SteadyTime(SteadyTime::duration(at));
  }

 private:
  const SteadyTime opened_at_;
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint64_t> ended_{0};
  std::atomic<bool> wants_caller_{true};
  std::atomic<int64_t> used_at_{0};
  // Of Look.
  uint64_t seen_ = 0;

  mutable absl::Mutex mu_;
  Caller caller_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_RESPONSE_CONNECTION_USE_H_

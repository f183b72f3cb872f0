// The room that the responses of all connections share.

#ifndef TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_POOL_H_
#define TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_POOL_H_

#include <atomic>
#include <chrono>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"

namespace timecache::server {

// The sum of the ResponseAccounts, and a bell that rings when room becomes free
// while calls wait. Accounts share it with their ledger: gRPC may free a buffer
// after the server's end.
//
// Thread-safe. Add and Release are an atomic addition; Release rings, with a
// lock, only while calls wait.
class ResponsePool {
 public:
  // Memory that gRPC and this server hold for a call, including a small
  // response.
  static constexpr int64_t kCallBytes = 16 << 10;
  // A connection that holds less than this does not wait until those that hold
  // much are ended, which takes ResponseLedger::kMinStall, unless this multiple
  // of the bound is held.
  static constexpr int64_t kSmallAccountBytes = 4 * kCallBytes;
  static constexpr int64_t kReserveShare = 2;

  // 0: no bound. A connection with more than `max_open_calls` is to be ended.
  ResponsePool(int64_t max_bytes, int max_open_calls)
      : max_bytes_(max_bytes), max_open_calls_(max_open_calls) {}

  int64_t max_bytes() const { return max_bytes_; }
  int max_open_calls() const { return max_open_calls_; }
  int64_t held_bytes() const { return bytes_.load(std::memory_order_relaxed); }
  bool HasRoomFor(int64_t account_bytes) const {
    const int64_t held = held_bytes();
    return max_bytes_ == 0 || account_bytes < max_bytes_ - held ||
           (account_bytes < kSmallAccountBytes &&
            held < kReserveShare * max_bytes_);
  }

  void Add(int64_t bytes) {
    const int64_t before = bytes_.fetch_add(bytes, std::memory_order_relaxed);
    // Once, as it is passed.
    if (max_bytes_ > 0 && before <= max_bytes_ && before + bytes > max_bytes_) {
      Ring();
    }
  }
  void Release(int64_t bytes) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    if (waiting() > 0) Ring();
  }

  // Calls that wait for room.
  int64_t waiting() const { return waiting_.load(std::memory_order_seq_cst); }
  // With what they hold; less, if negative.
  void AddWaiting(int64_t calls, int64_t bytes) {
    waiting_.fetch_add(calls, std::memory_order_seq_cst);
    const int64_t before =
        waiting_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    // Once, as it passes the bound.
    if (before <= max_bytes_ && before + bytes > max_bytes_) Ring();
  }

  // After it accounts accept no more waiting calls.
  void Stop() { stopped_.store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Ends a WaitForBell, this one or the next.
  void Ring() ABSL_LOCKS_EXCLUDED(mu_) {
    if (rung_.exchange(true)) return;
    absl::MutexLock lock(&mu_);
    bell_.Signal();
  }
  void WaitForBell(std::chrono::milliseconds timeout) ABSL_LOCKS_EXCLUDED(mu_) {
    const auto until = std::chrono::steady_clock::now() + timeout;
    absl::MutexLock lock(&mu_);
    while (!rung_.load() && std::chrono::steady_clock::now() < until) {
      bell_.WaitUntil(&mu_, until);
    }
    rung_.store(false);
  }

 private:
  const int64_t max_bytes_;
  const int max_open_calls_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> waiting_{0};
  std::atomic<int64_t> waiting_bytes_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> rung_{false};
  absl::Mutex mu_;
  SteadyCondVar bell_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_POOL_H_

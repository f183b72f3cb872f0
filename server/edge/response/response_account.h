// The responses that one connection's client has not read yet.

#ifndef TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_ACCOUNT_H_
#define TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_ACCOUNT_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/slice.h"
#include "server/edge/response/connection_use.h"
#include "server/edge/response/response_pool.h"

namespace timecache::server {

// Bytes that gRPC holds for one connection: of each large response from the
// creation of its buffer until gRPC has passed the last part of it to the
// kernel, even if the call has ended meanwhile; and for each call a fixed share
// from its answer until it is done.
//
// Thread-safe, and shared by the objects that it counts.
class ResponseAccount : public std::enable_shared_from_this<ResponseAccount> {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  // Called once: with OK if there is room now, otherwise with the status of the
  // call.
  using Waiter = absl::AnyInvocable<void(absl::Status)>;

  static constexpr int64_t kCallBytes = ResponsePool::kCallBytes;
  // Smaller responses are not counted by themselves.
  static constexpr size_t kMinCountedBytes = 4 << 10;

  // `can_end`: its connection can be identified and closed. `use`: where its
  // calls count; null: in one of its own.
  ResponseAccount(std::shared_ptr<ResponsePool> pool, std::string peer,
                  bool can_end, std::shared_ptr<ConnectionUse> use = nullptr)
      : pool_(std::move(pool)),
        peer_(std::move(peer)),
        can_end_(can_end),
        use_(use != nullptr ? std::move(use)
                            : std::make_shared<ConnectionUse>()) {}
  ResponseAccount(const ResponseAccount&) = delete;
  ResponseAccount& operator=(const ResponseAccount&) = delete;

  const std::string& peer() const { return peer_; }
  bool can_end() const { return can_end_; }
  // Bytes held; of these, those that the client must read soon.
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int64_t impatient_bytes() const;
  // Calls answered and not done; started and not done.
  int calls() const { return calls_.load(std::memory_order_relaxed); }
  int64_t open_calls() const { return use_->open_calls(); }
  ConnectionUse& use() const { return *use_; }
  // Since when the oldest response is held, now if there is none; of those that
  // must be read soon, or of all.
  SteadyTime OldestSince(bool patient_too, SteadyTime now) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Calls that are done, ever.
  uint64_t calls_done() const {
    return calls_done_.load(std::memory_order_relaxed);
  }

  // Whether a response of any size may be created now.
  bool HasRoom() const {
    return !ended() && pool_->HasRoomFor(bytes()) && !pool_->stopped();
  }
  // Whether waiting for room is possible: the connection was not ended, and the
  // server is not stopping.
  bool MustWait() const { return !HasRoom() && !ended() && !pool_->stopped(); }
  // OK unless the connection holds more than an eighth of the bound: for
  // responses that do not wait for room.
  absl::Status CheckShare() const;
  // Waits for room, and holds a call and `request_bytes` meanwhile. `waiter`
  // runs without a lock: on the ledger's thread or, once that has stopped or
  // the connection was ended, on this one.
  void WhenRoom(Waiter waiter, size_t request_bytes = 0)
      ABSL_LOCKS_EXCLUDED(mu_);

  // A buffer for a response, counted until gRPC has freed it. `patient`: its
  // reader has no time limit. A smaller one than kMinCountedBytes counts as
  // `small_bytes`; 0: not at all.
  grpc::Slice NewSlice(size_t size, bool patient = false,
                       int64_t small_bytes = 0) ABSL_LOCKS_EXCLUDED(mu_);

  // A call starts, unary or not; is answered, from when on it counts; and is
  // done. EndCall: whether it was answered.
  void BeginCall() {
    if (use_->BeginCall() >= pool_->max_open_calls()) EndForCalls();
  }
  void AnswerCall();
  void EndCall(bool answered);

  // For the ledger. The first waiting call, if it may continue now or has
  // waited since before `limit`; with the status to call it with.
  std::pair<Waiter, absl::Status> TakeWaiting(SteadyTime limit)
      ABSL_LOCKS_EXCLUDED(mu_);
  struct WaitingCalls {
    int64_t calls = 0;
    // What they hold.
    int64_t bytes = 0;
    // Since when the first one waits; SteadyTime::max() if there is none.
    SteadyTime since = SteadyTime::max();
  };
  WaitingCalls waiting() const ABSL_LOCKS_EXCLUDED(mu_);
  // Waiting and later calls fail. For the ledger: returns whether this is the
  // first time, so that it has to close the connection.
  bool End() {
    ended_.store(true, std::memory_order_relaxed);
    return !closing_.exchange(true, std::memory_order_relaxed);
  }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }

 private:
  friend class HeldResponse;
  friend class ResponseCharge;

  struct Waiting {
    SteadyTime since;
    int64_t bytes;
    Waiter waiter;
  };

  // It has too many calls: it ends at once, and the ledger closes the
  // connection.
  void EndForCalls();
  // Less, if negative.
  void Charge(int64_t bytes);
  absl::Status Refusal() const;

  const std::shared_ptr<ResponsePool> pool_;
  const std::string peer_;
  const bool can_end_;
  const std::shared_ptr<ConnectionUse> use_;
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> patient_bytes_{0};
  std::atomic<int> calls_{0};
  std::atomic<uint64_t> calls_done_{0};
  std::atomic<bool> ended_{false};
  std::atomic<bool> closing_{false};

  mutable absl::Mutex mu_;
  // Since when each response is held.
  absl::btree_multiset<SteadyTime> held_ ABSL_GUARDED_BY(mu_);
  absl::btree_multiset<SteadyTime> held_patiently_ ABSL_GUARDED_BY(mu_);
  std::deque<Waiting> waiting_ ABSL_GUARDED_BY(mu_);
  int64_t waiting_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

// Null if calls are not counted.
using ResponseAccountRef = std::shared_ptr<ResponseAccount>;

// Bytes that an account counts as long as this exists. Thread-compatible; may
// end on any thread.
class HeldResponse {
 public:
  // `patient`: the reader has no time limit.
  HeldResponse(ResponseAccountRef account, int64_t bytes, bool patient);
  ~HeldResponse();
  HeldResponse(const HeldResponse&) = delete;
  HeldResponse& operator=(const HeldResponse&) = delete;

 private:
  const ResponseAccountRef account_;
  const int64_t bytes_;
  const bool patient_;
  const ResponseAccount::SteadyTime since_;
};

// The bytes that a call has ready for its next responses, counted with them.
// Not thread-safe.
class ResponseCharge {
 public:
  // Null: not counted.
  explicit ResponseCharge(ResponseAccountRef account)
      : account_(std::move(account)) {}
  ~ResponseCharge() { Set(0); }
  ResponseCharge(const ResponseCharge&) = delete;
  ResponseCharge& operator=(const ResponseCharge&) = delete;

  ResponseAccount* account() const { return account_.get(); }
  void Set(int64_t bytes) {
    const int64_t more = bytes - std::exchange(bytes_, bytes);
    if (account_.get() != nullptr && more != 0) account_->Charge(more);
  }

 private:
  const ResponseAccountRef account_;
  int64_t bytes_ = 0;
};

// A buffer that `account` counts, unless that is null. `small_bytes` as
// ResponseAccount::NewSlice's.
inline grpc::Slice NewSlice(ResponseAccount* account, size_t size,
                            int64_t small_bytes = 0) {
  return account == nullptr
             ? grpc::Slice(size)
             : account->NewSlice(size, /*patient=*/false, small_bytes);
}

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_RESPONSE_RESPONSE_ACCOUNT_H_

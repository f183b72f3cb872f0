// A lock that processes compete for: a lease with a fencing token.
//
//   timecache::Lock lock(client, "lock/report", {.ttl = absl::Seconds(10)});
//   absl::StatusOr<std::optional<uint64_t>> token =
//       lock.Acquire(absl::Seconds(30));
//   if (token.ok() && *token) {
//     storage.Write(report, /*fencing_token=*/**token);
//     lock.Release().IgnoreError();
//   }

#ifndef TIMECACHE_RECIPES_LOCK_H_
#define TIMECACHE_RECIPES_LOCK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "timecache/client.h"
#include "timecache/export.h"

namespace timecache {

struct LockOptions {
  // Duration of a lease that is not renewed: 1 ms to the namespace's max_ttl.
  // Another owner gets the lock at most a bucket width of the namespace later.
  absl::Duration ttl = absl::Seconds(10);
  // This owner's name, for people who read the entry: at most some 100 B.
  std::string owner = {};
  // Acquire tries at least this often while it waits, for a lock that ended
  // without an event: removed by hand, or with its namespace.
  absl::Duration recheck = absl::Seconds(5);
  // Called once for each lease that ends without Release: as soon as a call
  // finds it another's, by that call, and at the latest when remaining() is
  // over, by a thread of the Lock's. The lease is then given up: Renew returns
  // false. Stop the work that the lock protects. It must not destroy the Lock.
  std::function<void()> on_lost = {};
};

// One contender for a lock, which is an entry of the client's namespace.
//
// Guarantee: of two owners, the later one has the larger token. A lease is not
// mutual exclusion by itself: an owner that is suspended beyond its time to
// live notices too late. What the lock protects must remember the largest token
// that it has seen, and refuse smaller ones; then only the last owner acts on
// it. Holds over restarts in a durable namespace; in another one a restart
// frees the lock, and tokens still grow.
//
// Unanswered calls (UNAVAILABLE, DEADLINE_EXCEEDED, ...):
// - An acquisition may have happened. The next TryAcquire of the same Lock
//   finds its own mark in the entry and takes it over; without one the lock is
//   free after at most `ttl`.
// - A renewal may have happened: the lease lasts at least until remaining() is
//   over. Renew again.
// - A release may have happened: Release again, which is safe.
//
// Cost: one round trip to acquire a lock that is free, three for one that was
// just released, two to find it taken; one to renew and to release. A waiter
// has one watch, and tries when the lock expires. A release writes an empty
// value that lives 1 ms: the lock is free at once for the next attempt, and
// waiters receive the expiry at most a bucket width later. So give locks a
// namespace with narrow buckets (ttl 10 s, 101 buckets: 0.1 s). It must not be
// `sliding`: reads would renew leases. Waiters are not ordered. `on_lost` costs
// a thread.
//
// One call at a time: each contender has a Lock of its own. token() and
// remaining() are thread-safe.
class TIMECACHED_EXPORT Lock {
 public:
  Lock(const Client& client, std::string key, LockOptions options = {});
  // Does not release: the lease then expires, and is not reported as lost.
  ~Lock();

  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  // The fencing token, or nullopt: another owner has the lock. Renews a lease
  // that this Lock has.
  absl::StatusOr<std::optional<uint64_t>> TryAcquire();

  // The same, but waits for the lock: nullopt if that takes longer than
  // `timeout`.
  absl::StatusOr<std::optional<uint64_t>> Acquire(absl::Duration timeout);

  // Renews the lease's time to live; its token does not change. False: the
  // lease is not held, or was lost; stop the work that the lock protects.
  absl::StatusOr<bool> Renew();

  // Frees the lock, if this owner still has it. False: it did not.
  absl::StatusOr<bool> Release();

  // The lease's token, as last known here.
  std::optional<uint64_t> token() const;

  // The time that the lease lasts for certain, on this machine's clock; zero
  // when it may be over. Counts from before the last successful call was sent.
  absl::Duration remaining() const;

 private:
  class Lease;

  absl::StatusOr<std::optional<uint64_t>> Put(
      std::optional<uint64_t> if_version);
  absl::StatusOr<std::optional<uint64_t>> TakeOver(uint64_t version);
  // When a lease that begins at this time may be over. Nothing: it has ended.
  absl::StatusOr<std::optional<std::chrono::steady_clock::time_point>> Touch(
      uint64_t version);

  const Client client_;
  const std::string key_;
  const LockOptions options_;
  // The value of the entry while this Lock has it: no other Lock writes it.
  const std::string mark_;
  const std::unique_ptr<Lease> lease_;
};

}  // namespace timecache

#endif  // TIMECACHE_RECIPES_LOCK_H_

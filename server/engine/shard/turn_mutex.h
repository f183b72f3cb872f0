// A mutex for work that repeatedly acquires and releases it.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_TURN_MUTEX_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_TURN_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// The first thread to try gets an absl::Mutex: a thread that releases it and
// wants it back is faster than one that has to be woken, which may wait for as
// long as the other has work. That is good for throughput if each turn is
// short. After a long turn a thread calls LockInTurn, which queues it after the
// waiting threads: they wait for a second mutex, which a thread releases once
// it holds the first.
//
// Costs as much as absl::Mutex while no thread waits. Not fair among waiting
// threads, or those that meanwhile call Lock.
class ABSL_LOCKABLE TurnMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (!mu_.TryLock()) LockInTurn();
  }
  void LockInTurn() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    absl::MutexLock turn(&turn_mu_);
    mu_.Lock();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mu_.TryLock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }

 private:
  friend class TurnMutexTest;

  absl::Mutex turn_mu_;
  absl::Mutex mu_;
};

class ABSL_SCOPED_LOCKABLE TurnLock {
 public:
  explicit TurnLock(TurnMutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) {
    mu_->Lock();
  }
  ~TurnLock() ABSL_UNLOCK_FUNCTION() { mu_->Unlock(); }
  TurnLock(const TurnLock&) = delete;
  TurnLock& operator=(const TurnLock&) = delete;

 private:
  TurnMutex* const mu_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_ENGINE_SHARD_TURN_MUTEX_H_

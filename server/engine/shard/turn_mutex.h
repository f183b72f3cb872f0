// A mutex for work that takes and leaves it again and again.

#ifndef TIMECACHED_SERVER_ENGINE_SHARD_TURN_MUTEX_H_
#define TIMECACHED_SERVER_ENGINE_SHARD_TURN_MUTEX_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// An absl::Mutex is whose who takes it first: a thread that lets go of it and
// wants it back is faster than one that has to be woken, which may so wait for
// as long as the other has work. That is good for throughput where each turn is
// short. Who has had a long one comes back with LockInTurn, behind those that
// wait: they do so before a door that only one at a time can pass, and that is
// let go of with the mutex in hand.
//
// Costs what absl::Mutex does while nobody waits. Not fair among those who
// wait, or come meanwhile with Lock.
class ABSL_LOCKABLE TurnMutex {
 public:
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (!mu_.TryLock()) LockInTurn();
  }
  void LockInTurn() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    absl::MutexLock door(&door_);
    mu_.Lock();
  }
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) { return mu_.TryLock(); }
  void Unlock() ABSL_UNLOCK_FUNCTION() { mu_.Unlock(); }

 private:
  friend class TurnMutexTest;

  absl::Mutex door_;
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

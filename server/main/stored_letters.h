// Events whose dead letters are stored in other slots, until they are settled.

#ifndef TIMECACHED_SERVER_MAIN_STORED_LETTERS_H_
#define TIMECACHED_SERVER_MAIN_STORED_LETTERS_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

namespace timecache::server {

// While a backup chooses where it ends in each slot, nothing is settled because of
// what is stored in another one: otherwise it could have the former, and lack the
// latter. Groups bound how many wait. Thread-safe.
class StoredLetters {
 public:
  // `may_settle` may be called until Drop.
  explicit StoredLetters(std::function<bool()> may_settle)
      : may_settle_(std::move(may_settle)) {}

  // Calls `settle` at once, or in a Look, or drops it.
  void Add(absl::AnyInvocable<void()> settle) ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      if (dropped_) return;
      if (!may_settle_()) return waiting_.push_back(std::move(settle));
    }
    settle();
  }
  // Settles what waits, if that may be. Call it about once a second.
  void Look() ABSL_LOCKS_EXCLUDED(mu_) {
    std::vector<absl::AnyInvocable<void()>> due;
    {
      absl::MutexLock lock(&mu_);
      if (waiting_.empty() || !may_settle_()) return;
      due.swap(waiting_);
    }
    for (auto& settle : due) settle();
  }
  // Drops what waits, and all that comes.
  void Drop() ABSL_LOCKS_EXCLUDED(mu_) {
    // Not destroyed with the lock.
    std::vector<absl::AnyInvocable<void()>> waiting;
    absl::MutexLock lock(&mu_);
    dropped_ = true;
    waiting.swap(waiting_);
  }

 private:
  const std::function<bool()> may_settle_;
  absl::Mutex mu_;
  bool dropped_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<absl::AnyInvocable<void()>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_MAIN_STORED_LETTERS_H_

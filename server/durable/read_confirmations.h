// Reads that wait until the cluster's log has confirmed the ownership.

#ifndef TIMECACHED_SERVER_DURABLE_READ_CONFIRMATIONS_H_
#define TIMECACHED_SERVER_DURABLE_READ_CONFIRMATIONS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/durable/completions.h"
#include "server/engine/map/change_log.h"

namespace timecache::server {

// Calls `done` once, before it returns or on any thread: true if this process was
// the owner at some moment after the call, by the log, whatever clocks say. False: it
// is the owner no longer.
using ConfirmOwner = std::function<void(std::function<void(bool owns)> done)>;

// One question to the log at a time: those who come meanwhile share the next one.
//
// Thread-safe. A read costs a lock, and a share of a question.
class ReadConfirmations
    : public std::enable_shared_from_this<ReadConfirmations> {
 public:
  // Beyond so many reads that wait, one fails at once.
  static constexpr size_t kMaxWaiting = 100'000;

  // `answers` runs the callbacks; not owned, and not used after Close.
  ReadConfirmations(ConfirmOwner confirm, Completions* answers)
      : confirm_(std::move(confirm)), answers_(answers) {}

  // Of what was read before this. UNAVAILABLE (OWNERSHIP_LOST): it may not be
  // answered.
  void Wait(ChangeLog::Done done) ABSL_LOCKS_EXCLUDED(mu_);
  // Those who wait now get OWNERSHIP_LOST.
  void Abandon() ABSL_LOCKS_EXCLUDED(mu_);
  // And those who come later, at once.
  void Close() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Ask();
  void Finish(bool owns) ABSL_LOCKS_EXCLUDED(mu_);
  void Answer(std::vector<ChangeLog::Done> waiting, bool owns)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // That they do not own.
  void AnswerAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ConfirmOwner confirm_;
  absl::Mutex mu_;
  // Null: closed.
  Completions* answers_ ABSL_GUARDED_BY(mu_);
  bool asking_ ABSL_GUARDED_BY(mu_) = false;
  // Those of the question that is open, and of the next one.
  std::vector<ChangeLog::Done> asked_ ABSL_GUARDED_BY(mu_);
  std::vector<ChangeLog::Done> next_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_READ_CONFIRMATIONS_H_

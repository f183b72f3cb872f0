// Runs the callbacks of calls that wait for a journal.

#ifndef TIMECACHED_SERVER_DURABLE_COMPLETIONS_H_
#define TIMECACHED_SERVER_DURABLE_COMPLETIONS_H_

#include <chrono>
#include <deque>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"

namespace timecache::server {

// A thread that runs callbacks in order: so the journal's committer writes the
// next group while the calls of the previous one are answered.
//
// Thread-safe.
class Completions {
 public:
  using Call = absl::AnyInvocable<void()>;

  Completions() : thread_([this] { Run(); }) {}
  // Runs all added callbacks, except delayed ones.
  ~Completions();
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  void Add(Call call) ABSL_LOCKS_EXCLUDED(mu_);
  void AddAfter(std::chrono::microseconds delay, Call call)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Drops delayed callbacks, now and from now on, and waits until all others
  // have run.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Time = std::chrono::steady_clock::time_point;

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Moves due callbacks to the others.
  void TakeDue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  timecache::SteadyCondVar wake_;
  std::deque<Call> calls_ ABSL_GUARDED_BY(mu_);
  std::multimap<Time, Call> delayed_ ABSL_GUARDED_BY(mu_);
  bool drops_delayed_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_DURABLE_COMPLETIONS_H_

// The streams that a stopping server notifies and waits for.

#ifndef TIMECACHED_SERVER_EDGE_RESPONSE_OPEN_STREAMS_H_
#define TIMECACHED_SERVER_EDGE_RESPONSE_OPEN_STREAMS_H_

#include <chrono>
#include <cstddef>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/base/steady_cond_var.h"

namespace timecache::server {

// A stream that a drain waits for.
class Drainable {
 public:
  virtual ~Drainable() = default;
  // The server stops: a stream without an end of its own ends now. Called at
  // most once, without a lock. Must not block. Returns whether its client may
  // take a while to read what it has been sent.
  virtual bool OnDrain() = 0;
  // The access rules have changed: a stream whose caller has lost a needed
  // permission ends. Called without a lock, at any time until OnDone. Must not
  // block.
  virtual void OnAccessChanged() = 0;
};

// Thread-safe.
class OpenStreams {
 public:
  // The status of calls that a stopping server refuses or ends: UNAVAILABLE
  // (DRAINING).
  static absl::Status DrainingError();

  // DrainingError() once Drain was called.
  absl::Status Add(const std::shared_ptr<Drainable>& stream)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(Drainable* stream) ABSL_LOCKS_EXCLUDED(mu_);

  // Notifies all streams that the access rules have changed.
  void AccessChanged() ABSL_LOCKS_EXCLUDED(mu_);

  struct Drained {
    size_t streams = 0;
    // Those whose OnDrain said so.
    size_t read_late = 0;
  };

  // Notifies all streams, and accepts no more.
  Drained Drain() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until there is none, at most until then; returns how many are left.
  size_t WaitForNone(std::chrono::steady_clock::time_point deadline)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  SteadyCondVar removed_;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_map<Drainable*, std::shared_ptr<Drainable>> streams_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_RESPONSE_OPEN_STREAMS_H_

// The streams that must be told when the server stops.

#ifndef TIMECACHED_SERVER_SERVICE_OPEN_STREAMS_H_
#define TIMECACHED_SERVER_SERVICE_OPEN_STREAMS_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace timecache {

// A stream that has no end of its own, and ends when it is asked to.
class Drainable {
 public:
  virtual ~Drainable() = default;
  // Called at most once, without a lock. Must not block.
  virtual void OnDrain() = 0;
};

// Thread-safe.
class OpenStreams {
 public:
  // What a call ends with that the server does not take, or not go on with,
  // because it stops: UNAVAILABLE (DRAINING).
  static absl::Status DrainingError();

  // DrainingError() once Drain was called.
  absl::Status Add(std::shared_ptr<Drainable> stream) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(Drainable* stream) ABSL_LOCKS_EXCLUDED(mu_);

  // Asks all streams to end. Does not wait for them.
  void Drain() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Mutex mu_;
  bool started_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_map<Drainable*, std::shared_ptr<Drainable>> streams_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_OPEN_STREAMS_H_

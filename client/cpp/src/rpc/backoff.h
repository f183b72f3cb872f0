// Pauses between attempts. Internal to the client.

#ifndef TIMECACHED_CLIENT_CPP_SRC_RPC_BACKOFF_H_
#define TIMECACHED_CLIENT_CPP_SRC_RPC_BACKOFF_H_

#include <algorithm>
#include <random>

#include "absl/time/time.h"

namespace timecache {

// Pauses that double from the shortest to the longest, each shortened at random
// by up to half: many clients of a restarting server do not reconnect all at
// once. Not thread-safe.
class Backoff {
 public:
  Backoff(absl::Duration min_pause, absl::Duration max_pause)
      : min_pause_(min_pause), max_pause_(max_pause), pause_(min_pause) {}

  absl::Duration Next() {
    thread_local std::minstd_rand generator{std::random_device()()};
    std::uniform_real_distribution<double> share(0.5, 1.0);
    const absl::Duration pause = pause_ * share(generator);
    pause_ = std::min(pause_ * 2, max_pause_);
    return pause;
  }

  // After a success.
  void Reset() { pause_ = min_pause_; }

 private:
  const absl::Duration min_pause_;
  const absl::Duration max_pause_;
  absl::Duration pause_;
};

}  // namespace timecache

#endif  // TIMECACHED_CLIENT_CPP_SRC_RPC_BACKOFF_H_

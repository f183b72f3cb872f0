// The expected sessions of a log, computed from it and the contract alone,
// without a server.

#ifndef TIMECACHED_CLIENT_EXAMPLES_EXPECTED_SESSIONS_H_
#define TIMECACHED_CLIENT_EXAMPLES_EXPECTED_SESSIONS_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "client/examples/log_line.h"
#include "client/examples/session.h"

namespace timecache::sessionize {

// Replays a log on a virtual clock that begins at 1970-01-01. The clock is the
// greatest time of the lines so far. A request at clock t gives its visitor's
// entry until the next multiple of w at or after t + ttl, where w is
// ttl / (num_buckets - 1) in whole microseconds, rounded down. Up to that
// moment, but not at it, another request goes into the same session.
//
// Not thread-safe. Holds every session.
class ExpectedSessions {
 public:
  ExpectedSessions(absl::Duration ttl, int64_t num_buckets)
      : ttl_(ttl),
        width_(absl::Trunc(ttl / (num_buckets - 1), absl::Microseconds(1))) {}

  void Add(const LogLine& line);

  // Ends them all, and returns them in order of end; those of one moment in
  // order of visitor.
  std::vector<EndedSession> Finish();

 private:
  const absl::Duration ttl_;
  const absl::Duration width_;
  absl::Time clock_ = absl::UnixEpoch();
  // By visitor; ended_at is what it will be if nothing more comes.
  absl::flat_hash_map<std::string, EndedSession> open_;
  std::vector<EndedSession> ended_;
};

}  // namespace timecache::sessionize

#endif  // TIMECACHED_CLIENT_EXAMPLES_EXPECTED_SESSIONS_H_

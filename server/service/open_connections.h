// The connections that are open, counted.

#ifndef TIMECACHED_SERVER_SERVICE_OPEN_CONNECTIONS_H_
#define TIMECACHED_SERVER_SERVICE_OPEN_CONNECTIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace timecache {

// gRPC owns a connection's file descriptor and tells nobody when it closes it.
// So each is remembered with its socket's inode number: where that is another
// one, or none, the connection is gone. Looked at as seldom as can be: when a
// number comes again, and, for all, when the limit is reached or somebody asks.
//
// Thread-safe. Add is O(1); a recount is a system call for each connection, at
// most one every kRecountInterval.
class OpenConnections {
 public:
  static constexpr absl::Duration kRecountInterval = absl::Milliseconds(100);

  explicit OpenConnections(size_t max_connections) : max_(max_connections) {}

  size_t max() const { return max_; }
  // Counts a connection, unless there are as many as may be.
  bool Add(int fd) ABSL_LOCKS_EXCLUDED(mu_);
  // Not older than kRecountInterval.
  size_t Count() const ABSL_LOCKS_EXCLUDED(mu_);
  // Connections that were not taken.
  uint64_t refused() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Recount() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_;
  mutable absl::Mutex mu_;
  // By file descriptor; 0: none that is ours.
  mutable std::vector<ino_t> inodes_ ABSL_GUARDED_BY(mu_);
  mutable size_t count_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  mutable absl::Time recounted_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_OPEN_CONNECTIONS_H_

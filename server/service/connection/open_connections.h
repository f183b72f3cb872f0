// The connections that are open, counted.

#ifndef TIMECACHED_SERVER_SERVICE_CONNECTION_OPEN_CONNECTIONS_H_
#define TIMECACHED_SERVER_SERVICE_CONNECTION_OPEN_CONNECTIONS_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/service/connection/peer_address.h"

namespace timecache::server {

// gRPC owns a connection's file descriptor and tells nobody when it closes it.
// So each is remembered with its socket's inode number: where that is another
// one, or none, the connection is gone. Looked at as seldom as can be: when a
// number comes again, and, for all, when the limit is reached or somebody asks.
//
// Thread-safe. All but a recount and CutSilent is O(1), in system calls as
// well; these two are O(connections), a recount every kRecountInterval at most.
class OpenConnections {
 public:
  static constexpr absl::Duration kRecountInterval = absl::Milliseconds(100);

  explicit OpenConnections(size_t max_connections) : max_(max_connections) {}

  size_t max() const { return max_; }
  // Counts a connection, unless there are as many as may be.
  bool Add(int fd, const PeerEndpoint& peer = {}) ABSL_LOCKS_EXCLUDED(mu_);
  // Not older than kRecountInterval.
  size_t Count() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the peer of the connection, or gRPC, has closed it. False for one
  // that is not known.
  bool IsGone(const PeerEndpoint& peer) const ABSL_LOCKS_EXCLUDED(mu_);
  // What its peer has sent, by the kernel's account; none if the connection is
  // gone, or not known, or no TCP connection.
  std::optional<int64_t> BytesReceived(const PeerEndpoint& peer) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the connection, for gRPC to notice and close. What its peer has sent
  // and gRPC has not yet read is lost, and what waits to be sent to it.
  void Cut(const PeerEndpoint& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the TCP connections whose peers have sent nothing for so long, and
  // have no bytes to take that were sent to them: to find those that do not
  // answer a PING.
  void CutSilent(std::chrono::milliseconds silent) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the peer has closed it, or its half of it, which gRPC's clients do
  // together.
  static bool IsClosed(int fd);
  // Connections that were not taken.
  uint64_t refused() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    // 0: none that is ours.
    ino_t inode = 0;
    PeerEndpoint peer;
  };

  void Recount() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets what had this number, and is gone.
  void Clear(size_t fd) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Its number, or -1 if it is not known; `*open` is false if another file has
  // the number by now.
  int Find(const PeerEndpoint& peer, bool* open) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_;
  mutable absl::Mutex mu_;
  // By file descriptor.
  mutable std::vector<Connection> connections_ ABSL_GUARDED_BY(mu_);
  mutable absl::flat_hash_map<PeerEndpoint, int> fds_ ABSL_GUARDED_BY(mu_);
  mutable size_t count_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  mutable absl::Time recounted_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_SERVICE_CONNECTION_OPEN_CONNECTIONS_H_

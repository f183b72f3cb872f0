// Counts the open connections.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_OPEN_CONNECTIONS_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_OPEN_CONNECTIONS_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/edge/connection/peer_address.h"
#include "server/edge/response/connection_use.h"

namespace timecache::server {

// gRPC owns a connection's file descriptor and does not report when it closes
// it. So each is stored with its socket's inode number: if the descriptor has
// another one, or none, the connection is gone. Checked as seldom as possible:
// when a descriptor's number is reused, and, for all, when the limit is reached
// or on request.
//
// Thread-safe. All but a recount, CutSilent, List and Close is O(1), in system
// calls as well; these are O(connections), a recount every kRecountInterval at
// most.
class OpenConnections {
 public:
  static constexpr absl::Duration kRecountInterval = absl::Milliseconds(100);

  explicit OpenConnections(size_t max_connections);
  ~OpenConnections();
  OpenConnections(const OpenConnections&) = delete;
  OpenConnections& operator=(const OpenConnections&) = delete;

  size_t max() const { return max_; }
  // Counts a connection, unless the limit is reached.
  bool Add(int fd, const PeerEndpoint& peer = {}) ABSL_LOCKS_EXCLUDED(mu_);
  // Not older than kRecountInterval.
  size_t Count() const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the peer of the connection, or gRPC, has closed it. False for one
  // that is not known.
  bool IsGone(const PeerEndpoint& peer) const ABSL_LOCKS_EXCLUDED(mu_);
  // Bytes that its peer has sent, by the kernel's account; none if the
  // connection is gone, unknown, or not TCP.
  std::optional<int64_t> BytesReceived(const PeerEndpoint& peer) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the connection, for gRPC to notice and close. Unread data of its peer,
  // and data waiting to be sent to it, are lost.
  void Cut(const PeerEndpoint& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the TCP connections whose peers have sent nothing for this long, and
  // have no sent bytes to read: to find those that do not answer a PING.
  void CutSilent(std::chrono::milliseconds silent) ABSL_LOCKS_EXCLUDED(mu_);
  // Whether the peer has closed it, or its half of it, which gRPC's clients do
  // together.
  static bool IsClosed(int fd);

  // For operators. A connection as it is listed.
  struct Listed {
    uint64_t id;
    // "192.0.2.1:50000", "[2001:db8::1]:50000"; of a unix socket "unix:pid=42".
    std::string peer;
    std::chrono::steady_clock::time_point since;
    // Never null. Calls on unix sockets are not known by their connection.
    std::shared_ptr<const ConnectionUse> use;
  };
  // At most `most` of those that are open and have a larger id, the oldest
  // first: ids grow, from 1.
  std::vector<Listed> List(uint64_t after, size_t most) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Cuts the connection. False if none has this id, or it was closed so before.
  bool Close(uint64_t id) ABSL_LOCKS_EXCLUDED(mu_);
  // Where the calls of the connection count; null if it is not known.
  std::shared_ptr<ConnectionUse> UseOf(const PeerEndpoint& peer) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Connections that were refused.
  uint64_t refused() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    // 0: none that is ours.
    ino_t inode = 0;
    PeerEndpoint peer;
    uint64_t id = 0;
    std::chrono::steady_clock::time_point since = {};
    std::shared_ptr<ConnectionUse> use = nullptr;
    // By Close: gRPC closes it in a moment.
    bool closing = false;
  };

  void Recount() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Forgets the closed connection that had this number.
  void Clear(size_t fd) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Calls `act` with a descriptor of the connection that has this number, unless
  // it is gone. gRPC may close its own at any time, and the kernel give the
  // number to another connection: this one keeps the connection open.
  template <typename Act>
  void WithOpen(int fd, const Act& act) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_;
  // Of WithOpen, which must not lack a descriptor: the number that it uses, and
  // what has this number meanwhile.
  const int unused_;
  const int pinned_;
  mutable absl::Mutex mu_;
  // By file descriptor.
  mutable std::vector<Connection> connections_ ABSL_GUARDED_BY(mu_);
  mutable absl::flat_hash_map<PeerEndpoint, int> fds_ ABSL_GUARDED_BY(mu_);
  mutable size_t count_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t last_id_ ABSL_GUARDED_BY(mu_) = 0;
  mutable absl::Time recounted_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_OPEN_CONNECTIONS_H_

// Bytes sent by connections without credentials.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_UNPROVEN_BYTES_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_UNPROVEN_BYTES_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_set.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "server/edge/connection/open_connections.h"
#include "server/edge/connection/peer_address.h"

namespace timecache::server {

// gRPC 1.51 reads a whole request before the caller is known, and has one bound
// for the requests of all connections: beyond it gRPC ends connections and
// calls of any caller. So the unanswered bytes of unproven connections have a
// bound of their own, below gRPC's: beyond it, the connections that have sent
// most are to be cut.
//
// They may take many times as much memory: a header of 5 bytes takes 245, and
// gRPC's limit for headers restarts with each CONTINUATION frame. So the same
// bound applies to the growth of the process's memory, beyond accounted memory,
// since unproven connections started to send more than kFreeBytes: then all
// that do are to be cut.
//
// A connection is unproven until a call on it has credentials, or needs none,
// however long it has been open. kFreeBytes of each do not count: HTTP/2 lets
// any client send as much before a request is read. A quiet connection costs
// nothing, and a busy one is checked every kLookInterval, by the kernel's
// account of its received bytes: so as much as arrives in that time may be kept
// beyond the bound.
//
// Thread-safe. All but Look is O(log of the connections that count), without a
// system call except in Add and Prove; Look costs two for a connection that has
// sent something, and, beyond the bound, for each that counts.
class UnprovenBytes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int64_t kFreeBytes = int64_t{64} << 10;
  // Of a call without credentials, the answered bytes besides its message.
  static constexpr int64_t kCallBytes = int64_t{1} << 10;
  // PINGs and the like, which need no answer.
  static constexpr int64_t kFreeBytesPerSecond = 64;
  // The least time between two looks.
  static constexpr std::chrono::milliseconds kLookInterval{5};

  // `connections`: all that are added here are there before. Not owned.
  // `memory_bytes` returns the process's memory beyond the accounted memory.
  UnprovenBytes(int64_t max_bytes, const OpenConnections* connections,
                std::function<int64_t()> memory_bytes);
  ~UnprovenBytes();
  UnprovenBytes(const UnprovenBytes&) = delete;
  UnprovenBytes& operator=(const UnprovenBytes&) = delete;

  // A new connection. Not to be called for those without an address.
  void Add(int fd, const PeerEndpoint& peer, Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // The connection is proven.
  void Prove(const PeerEndpoint& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // A call without credentials has been answered, and so many bytes of it
  // counted here.
  void CountAnswered(const PeerEndpoint& peer, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Whether bytes of any of them count: only then Prove is needed. A read of a
  // number.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  // For poll: readable when a Look is needed.
  int fd() const { return epoll_; }
  // When one is needed in any case; none while nothing counts.
  std::optional<Time> NextLook() const ABSL_LOCKS_EXCLUDED(mu_);
  struct Excess {
    PeerEndpoint peer;
    int64_t bytes;
  };
  // The connections to cut, which are forgotten here: most bytes first. Reads
  // the memory if any bytes count.
  std::vector<Excess> Look(Time now) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    int fd;
    Time began;
    // The answered part of the bytes that the kernel received.
    int64_t answered = 0;
    // The bytes that count: 0 unless it is in by_bytes_.
    int64_t bytes = 0;
  };
  using Connections = absl::flat_hash_map<PeerEndpoint, Connection>;

  void Forget(Connections::iterator it) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetBytes(int64_t bytes, Connection* connection)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts it by what has come. False if it is gone, and forgotten.
  bool Count(Connections::iterator it, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // So each that is in by_bytes_: max_bytes / kFreeBytes of them, and those
  // that came since the last Look.
  void CountAll(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether the memory has grown by more than max_bytes_ since anything counts.
  bool HasGrown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t max_bytes_;
  const OpenConnections* const open_;
  const std::function<int64_t()> memory_bytes_;
  const int epoll_;
  std::atomic<bool> any_{false};
  mutable absl::Mutex mu_;
  Connections connections_ ABSL_GUARDED_BY(mu_);
  // Whose a descriptor is; one that is gone stays until its number comes again.
  std::vector<PeerEndpoint> by_fd_ ABSL_GUARDED_BY(mu_);
  // Those that count, and what they count together.
  absl::btree_set<std::pair<int64_t, int>> by_bytes_ ABSL_GUARDED_BY(mu_);
  int64_t sum_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  // The memory when the first of those began to count.
  std::optional<int64_t> memory_before_ ABSL_GUARDED_BY(mu_);
  // When all that count were looked at.
  Time looked_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_UNPROVEN_BYTES_H_

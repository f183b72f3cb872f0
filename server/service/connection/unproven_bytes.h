// What connections have sent on which nobody has shown credentials.

#ifndef TIMECACHED_SERVER_SERVICE_CONNECTION_UNPROVEN_BYTES_H_
#define TIMECACHED_SERVER_SERVICE_CONNECTION_UNPROVEN_BYTES_H_

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
#include "server/service/connection/open_connections.h"
#include "server/service/connection/peer_address.h"

namespace timecache::server {

// gRPC 1.51 reads the whole of a request before it says who calls, and what it
// keeps for the requests of all connections has one bound: past that it ends
// connections and calls of anybody. So what strangers have sent and nobody has
// answered has a bound of its own, below gRPC's: past it, the connections that
// have sent most are to be cut.
//
// What it makes of them may be many times as much: of a header of 5 bytes 245,
// and its limit for headers begins anew with each CONTINUATION frame. So the
// same bound holds for what the memory of the process has grown by, beyond what
// is accounted for, since strangers send more than is free: then all are to be
// cut that do.
//
// A connection is a stranger's until a call on it has credentials, or needs
// none, however long it has been open. kFreeBytes of each do not count: HTTP/2
// lets anybody send as much before a request is read. A connection that is
// quiet costs nothing, and one that is busy is looked at every kLookInterval,
// by the kernel's account of what it received: so as much as arrives in that
// time may be kept beyond the bound.
//
// Thread-safe. All but Look is O(log of those that count), without a system call
// but for Add and Prove; Look costs two for a connection that has sent something, and, past the
// bound, for each that counts.
class UnprovenBytes {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr int64_t kFreeBytes = int64_t{64} << 10;
  // Of a call without credentials, what is answered beside its message.
  static constexpr int64_t kCallBytes = int64_t{1} << 10;
  // PINGs and the like, which need no answer.
  static constexpr int64_t kFreeBytesPerSecond = 64;
  // The least time between two looks.
  static constexpr std::chrono::milliseconds kLookInterval{5};

  // `connections`: all that are added here are there before. Not owned.
  // `memory_bytes` tells what the process has beside what is accounted for.
  UnprovenBytes(int64_t max_bytes, const OpenConnections* connections,
                std::function<int64_t()> memory_bytes);
  ~UnprovenBytes();
  UnprovenBytes(const UnprovenBytes&) = delete;
  UnprovenBytes& operator=(const UnprovenBytes&) = delete;

  // A connection begins. Not to be called for those without an address.
  void Add(int fd, const PeerEndpoint& peer, Time now) ABSL_LOCKS_EXCLUDED(mu_);
  // It is not a stranger's any more.
  void Prove(const PeerEndpoint& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // A call without credentials has been answered, and so many bytes of it
  // counted here.
  void CountAnswered(const PeerEndpoint& peer, int64_t bytes)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Whether what any of them sent counts: only then Prove is needed. A read of
  // a number.
  bool any() const { return any_.load(std::memory_order_relaxed); }

  // For poll: readable when a Look is needed.
  int fd() const { return epoll_; }
  // When one is needed in any case; none while nothing counts.
  std::optional<Time> NextLook() const ABSL_LOCKS_EXCLUDED(mu_);
  struct Excess {
    PeerEndpoint peer;
    int64_t bytes;
  };
  // What is to be cut, and is forgotten here: most bytes first. Asks for the
  // memory if anything counts.
  std::vector<Excess> Look(Time now) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Connection {
    int fd;
    Time began;
    // What the kernel received, and what of it was answered.
    int64_t received = 0;
    int64_t answered = 0;
    // What counts: 0 unless it is in by_bytes_.
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

#endif  // TIMECACHED_SERVER_SERVICE_CONNECTION_UNPROVEN_BYTES_H_

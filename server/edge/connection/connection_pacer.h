// Limits the rate at which connections of one address are accepted.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_CONNECTION_PACER_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_CONNECTION_PACER_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "server/edge/connection/peer_address.h"
#include "server/edge/connection/probation.h"

namespace timecache::server {

// A connection that was accepted and may have to wait: its descriptor, which of
// the listeners it came to, and where from.
struct PacedConnection {
  int fd = -1;
  size_t listener = 0;
  PeerEndpoint peer = {};
};

// A token bucket for each address. Connections beyond an address's rate wait,
// in order, and cost a descriptor meanwhile; a connection that its peer closes
// while it waits is dropped and costs no token. So a client that opens and
// closes connections as fast as it can slows down only itself. An accepted
// connection is on Probation, and while that has no room, all wait: the address
// whose bucket has been full for longest comes first.
//
// An address with a known client is not paced like a stranger's: its connections
// use its tokens, but need none, and no room on Probation, as after a restart
// thousands of clients come back at once. They wait only for what its calls
// without credentials, or without a connection, have cost.
//
// Only decides: reads no clock and touches no descriptor. Thread-safe. Costs a
// hash look-up for a connection, and about 150 bytes for each address that came
// lately.
class ConnectionPacer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;
  // Whether the connection's peer has closed it.
  using IsGone = std::function<bool(int fd)>;

  // Connections that wait, of one address; one more is refused.
  static constexpr size_t kMaxWaiting = 256;
  // How often waiting connections are checked for closed ones, if that many
  // wait.
  static constexpr std::chrono::milliseconds kLookInterval{100};
  // Addresses that are remembered; beyond these, all others share a bucket.
  static constexpr size_t kMaxAddresses = 16'384;
  // A bucket holds the tokens of this part of a second, at least one.
  static constexpr int kBurstPart = 20;
  // The cost of a call without credentials, or without a connection, in
  // connections.
  static constexpr double kCallCost = 0.2;
  // The largest debt: the longest wait of an address for its next connection.
  static constexpr std::chrono::seconds kMaxDebt{10};

  // Connections a second of one address.
  explicit ConnectionPacer(int per_second);

  enum class Verdict { kNow, kWait, kRefuse };
  // Whether a connection is accepted now. The pacer owns a waiting one. Without
  // an address: always now.
  Verdict Offer(PacedConnection connection, Time now, const IsGone& is_gone)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Connections that have waited, and are accepted now or gone.
  struct Due {
    std::vector<PacedConnection> taken;
    std::vector<PacedConnection> gone;
  };
  Due TakeDue(Time now, const IsGone& is_gone) ABSL_LOCKS_EXCLUDED(mu_);
  // When to call TakeDue again; none while no connection waits.
  std::optional<Time> NextDue() const ABSL_LOCKS_EXCLUDED(mu_);
  // All that waits.
  std::vector<PacedConnection> TakeAll() ABSL_LOCKS_EXCLUDED(mu_);

  // Charges the address with the cost of this many connections. False if its
  // debt was at its maximum.
  bool Charge(const PeerAddress& from, double connections, Time now)
      ABSL_LOCKS_EXCLUDED(mu_);
  // A call of the connection needs no credentials, or has them; `known`: its
  // address is from now on that of a known client. True if that makes room for a
  // waiting connection.
  bool Prove(const PeerEndpoint& peer, bool known = false)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Until when a call may be the first one of a new connection, of which Prove must
  // hear, unless another connection comes; Time() if none. A read of a
  // number.
  Time probation_until() const {
    return Time(Duration(probation_until_.load(std::memory_order_relaxed)));
  }
  // Charges the address for this many calls without credentials, kCallCost
  // each. An expensive call may count as several.
  bool CountAnonymousCalls(const PeerAddress& from, double calls, Time now)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Whether it has used more than half of its bucket.
  bool IsBusy(const PeerAddress& from, Time now) const ABSL_LOCKS_EXCLUDED(mu_);
  // Whether any address may have. A read of a number.
  bool AnyBusy(Time now) const {
    return now.time_since_epoch().count() <
           busy_until_.load(std::memory_order_relaxed);
  }

  // Connections that had to wait, and those of them that were gone before their
  // turn; and connections that were refused.
  uint64_t delayed() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t gone() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t refused() const ABSL_LOCKS_EXCLUDED(mu_);
  // That of the last connection which was not taken at once.
  PeerAddress last_delayed() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Address {
    // When its bucket will be full again.
    Time full_at;
    std::deque<PacedConnection> waiting;
    // Whether it is in one of the maps of due ones, as always while connections
    // wait, and when it is due there.
    bool is_due = false;
    Time due_at;
    // Whether a known client has come from there.
    bool is_known = false;
    Time looked_at;
  };
  using Addresses = absl::node_hash_map<PeerAddress, Address>;

  // When it has a token, or needs none.
  Time TokenAt(const Address& address) const {
    return address.full_at - tolerance_ -
           (address.is_known ? token_ : Duration());
  }
  // Takes tokens, up to this debt.
  void Use(Duration tokens, Time now, Duration max_debt, Address* address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The connection is accepted.
  void Take(const PacedConnection& connection, Time now, Address* address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool ChargeLocked(const PeerAddress& from, double connections, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Address& AddressOf(const PeerAddress& from, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetDue(Address* address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  using DueAddresses = absl::btree_multimap<Time, Address*>;
  // Takes connections that are due; of strangers, while Probation has room.
  void TakeSome(Time now, const IsGone& is_gone, DueAddresses* from, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasRoom(const Address& address, Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return address.is_known || probation_.HasRoom(now);
  }
  void SetKnown(Address* address) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DropGone(const IsGone& is_gone, Address* address)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // A token's time, and that of all but one of a full bucket.
  const Duration token_;
  const Duration tolerance_;
  // When no address is busy any more, unless one comes. Changed under mu_.
  std::atomic<int64_t> busy_until_{0};
  // Of probation_, so that calls need not take mu_.
  std::atomic<int64_t> probation_until_{0};
  mutable absl::Mutex mu_;
  // The same for the last connection that needed no probation.
  Time known_until_ ABSL_GUARDED_BY(mu_);
  Probation probation_ ABSL_GUARDED_BY(mu_);
  Addresses addresses_ ABSL_GUARDED_BY(mu_);
  // Addresses by when they have a token, or would have had one without Charge:
  // strangers', and known ones.
  DueAddresses due_ ABSL_GUARDED_BY(mu_);
  DueAddresses known_due_ ABSL_GUARDED_BY(mu_);
  // Gone, for the next TakeDue.
  std::vector<PacedConnection> dropped_ ABSL_GUARDED_BY(mu_);
  // Full buckets are forgotten when there are so many addresses.
  size_t sweep_at_ ABSL_GUARDED_BY(mu_) = 64;
  PeerAddress last_delayed_ ABSL_GUARDED_BY(mu_);
  uint64_t delayed_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t gone_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t refused_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_CONNECTION_PACER_H_

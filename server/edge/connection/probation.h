// Accepted connections without credentials so far.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_PROBATION_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_PROBATION_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "server/edge/connection/peer_address.h"

namespace timecache::server {

// The requests of a connection are known only once gRPC has read them, and all
// new connections together can send more than the server handles in seconds. So
// only few are on probation at a time: each until a call on it has credentials
// (or needs none), or for kTime. Calls without credentials use up a budget that
// all connections share: while it is overdrawn no connection is accepted
// either.
//
// Not thread-safe. All is O(1), amortised.
class Probation {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::seconds kTime{1};
  // The budget's part of a second that may be used at once; and the longest
  // wait of new connections for the use of earlier ones.
  static constexpr std::chrono::milliseconds kBurst{100};
  static constexpr std::chrono::milliseconds kMaxDebt{1'000};
  // Connections on probation, and calls without credentials a second, by the
  // connections a second that one address may bring.
  static constexpr int MaxConnections(int pace) {
    return std::max(pace / 2, 16);
  }
  static constexpr int MaxCalls(int pace) { return std::max(40 * pace, 1'000); }

  explicit Probation(int pace)
      : max_connections_(static_cast<size_t>(MaxConnections(pace))),
        call_(Time::duration(std::chrono::seconds(1)) / MaxCalls(pace)) {}

  // Whether another connection may be accepted.
  bool HasRoom(Time now) {
    while (!taken_.empty() && taken_.front().first + kTime <= now) {
      const auto it = unproven_.find(taken_.front().second);
      if (it != unproven_.end() && it->second == taken_.front().first) {
        unproven_.erase(it);
      }
      taken_.pop_front();
    }
    return unproven_.size() < max_connections_ && paid_at_ <= now + kBurst;
  }
  // When there may be, unless connections prove themselves before.
  Time RoomAt() const {
    const Time paid = paid_at_ - kBurst;
    return unproven_.size() < max_connections_
               ? paid
               : std::max(paid, taken_.front().first + kTime);
  }

  void Take(const PeerEndpoint& peer, Time now) {
    unproven_[peer] = now;
    taken_.emplace_back(now, peer);
  }
  // False if it was not on probation.
  bool Prove(const PeerEndpoint& peer) { return unproven_.erase(peer) > 0; }
  size_t size() const { return unproven_.size(); }

  void CountAnonymousCalls(double calls, Time now) {
    const auto cost = std::chrono::duration_cast<Time::duration>(call_ * calls);
    paid_at_ = std::min(std::max(paid_at_, now) + cost, now + kMaxDebt);
  }

 private:
  const size_t max_connections_;
  // A call's time.
  const Time::duration call_;
  absl::flat_hash_map<PeerEndpoint, Time> unproven_;
  // In order; also those that have proved themselves since.
  std::deque<std::pair<Time, PeerEndpoint>> taken_;
  // When the budget will be as it was at first.
  Time paid_at_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_PROBATION_H_

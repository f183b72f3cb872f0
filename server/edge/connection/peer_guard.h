// Charges addresses for their calls.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_PEER_GUARD_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_PEER_GUARD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "server/edge/connection/connection_pacer.h"
#include "server/edge/connection/open_connections.h"
#include "server/edge/connection/unproven_bytes.h"

namespace timecache::server {

// gRPC 1.51 delivers the calls that it has read from a connection even if that
// has been closed since, without notice. Here such calls are detected, so that
// no work is done for them, and charged to their address, as are calls without
// credentials: an address with many of them waits for its next connection, and
// if that is not enough, the connection is cut. A connection's first call with
// credentials ends its Probation.
//
// Thread-safe. Costs a read of the clock for a call; while an address connects
// faster than others, a connection is on probation, or an unproven connection
// sends much (UnprovenBytes), some hundred nanoseconds; a system call for the
// calls of such an address.
class PeerGuard {
 public:
  // Requests up to this count as a call, whatever their caller.
  static constexpr size_t kMaxFreeRequestBytes = size_t{16} << 10;
  // Bytes of a larger one that count as a connection: gRPC has read them all by
  // then, and some such requests at a time use up its memory for all callers.
  static constexpr double kBytesOfConnection = 128 << 10;

  // None is owned; all must outlive this. `wake` is called when a waiting
  // connection may be accepted.
  PeerGuard(
      ConnectionPacer* pacer, OpenConnections* connections,
      UnprovenBytes* unproven, std::function<void()> wake = [] {})
      : pacer_(pacer),
        connections_(connections),
        unproven_(unproven),
        wake_(std::move(wake)) {}
  PeerGuard(const PeerGuard&) = delete;
  PeerGuard& operator=(const PeerGuard&) = delete;

  using Time = ConnectionPacer::Time;

  // The status of a call whose connection is gone.
  static absl::Status GoneError() {
    return absl::CancelledError("the connection is gone");
  }

  // Whether the call's connection is gone: work for it would be wasted.
  bool IsGone(const grpc::ServerContextBase& context);
  // The call needs no credentials, or had none that are known.
  void CountAnonymous(const grpc::ServerContextBase& context);
  // Such a call had a request of so many bytes.
  void CountAnonymousBytes(const grpc::ServerContextBase& context,
                           size_t bytes);

  // The call has credentials, or needs none: its connection has proved itself.
  // Its client is known, if it has, or comes from a loopback or private address.
  void CountKnown(const grpc::ServerContextBase& context, bool has_credentials);

  // The same by gRPC's name of a call's peer.
  bool IsGone(absl::string_view peer, Time now);
  void CountAnonymous(absl::string_view peer, Time now);
  void CountAnonymousBytes(absl::string_view peer, size_t bytes, Time now);
  void CountKnown(absl::string_view peer, bool has_credentials);

  // Such a connection has sent too much and is cut: its bytes count as in
  // CountAnonymousBytes.
  void CutUnproven(const PeerEndpoint& peer, int64_t bytes, Time now);

  // Calls that were dropped, and connections that were cut.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  uint64_t cut() const { return cut_.load(std::memory_order_relaxed); }

 private:
  // The number of calls that cost as much as a request of these bytes.
  static double CallsOf(int64_t bytes) {
    return static_cast<double>(bytes) / kBytesOfConnection /
           ConnectionPacer::kCallCost;
  }
  // Charges for this many calls. Cuts the connection if its address was in
  // debt.
  void Count(const PeerEndpoint& peer, double calls, Time now);
  void Cut(const PeerEndpoint& peer);

  ConnectionPacer* const pacer_;
  OpenConnections* const connections_;
  UnprovenBytes* const unproven_;
  const std::function<void()> wake_;
  std::atomic<uint64_t> dropped_{0};
  std::atomic<uint64_t> cut_{0};
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_PEER_GUARD_H_

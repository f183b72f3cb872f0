// What calls tell of the addresses that they come from.

#ifndef TIMECACHED_SERVER_SERVICE_CONNECTION_PEER_GUARD_H_
#define TIMECACHED_SERVER_SERVICE_CONNECTION_PEER_GUARD_H_

#include <grpcpp/server_context.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/service/connection/connection_pacer.h"
#include "server/service/connection/open_connections.h"
#include "server/service/connection/unproven_bytes.h"

namespace timecache::server {

// gRPC 1.51 hands over the calls that it has read from a connection, also when
// that has been closed since, and says nothing of it. Here such calls are
// found, so that no work is done for them, and count against their address, as
// calls do that anybody can make who has no credentials: an address that makes
// many of them waits for its next connection, and if that does not do, the
// connection that makes them is cut. A connection's first call with credentials
// ends its Probation.
//
// Thread-safe. Costs a look at the clock for a call; while an address
// connects faster than others, a connection is on probation, or a stranger
// sends much (UnprovenBytes), some hundred nanoseconds; a system call for the calls of such an address.
class PeerGuard {
 public:
  // Requests up to this count as a call, whoever makes them.
  static constexpr size_t kMaxFreeRequestBytes = size_t{16} << 10;
  // Bytes of a larger one that count as a connection: gRPC has read them all by
  // then, and some such requests at a time use up its memory for all callers.
  static constexpr double kBytesOfConnection = 128 << 10;

  // None is owned; all must outlive this. `wake` is called when a connection
  // that waits may be taken.
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

  // What a call ends with whose connection is gone.
  static absl::Status GoneError() {
    return absl::CancelledError("the connection is gone");
  }

  // Whether the call's connection is gone: what is done for it is in vain.
  bool IsGone(const grpc::ServerContextBase& context);
  // The call was one that needs no credentials, or had none that are known.
  void CountAnonymous(const grpc::ServerContextBase& context);
  // Such a call had a request of so many bytes.
  void CountAnonymousBytes(const grpc::ServerContextBase& context,
                           size_t bytes);

  // The call has credentials, or needs none: its connection has proved itself.
  void CountKnown(const grpc::ServerContextBase& context);

  // The same of a call's peer, as gRPC says it.
  bool IsGone(absl::string_view peer, Time now);
  void CountAnonymous(absl::string_view peer, Time now);
  void CountAnonymousBytes(absl::string_view peer, size_t bytes, Time now);
  void CountKnown(absl::string_view peer);

  // Such a connection has sent so much that it is not to go on: it counts as
  // CountAnonymousBytes.
  void CutUnproven(const PeerEndpoint& peer, int64_t bytes, Time now);

  // Calls that were dropped, and connections that were cut.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  uint64_t cut() const { return cut_.load(std::memory_order_relaxed); }

 private:
  // Calls that cost as much as the bytes of a request.
  static double CallsOf(int64_t bytes) {
    return static_cast<double>(bytes) / kBytesOfConnection /
           ConnectionPacer::kCallCost;
  }
  // What counts as so many calls. Cuts the connection if its address was in
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

#endif  // TIMECACHED_SERVER_SERVICE_CONNECTION_PEER_GUARD_H_

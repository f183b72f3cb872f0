// Accepts connections, up to a limit, and passes them to gRPC.

#ifndef TIMECACHED_SERVER_EDGE_CONNECTION_CONNECTION_ACCEPTOR_H_
#define TIMECACHED_SERVER_EDGE_CONNECTION_CONNECTION_ACCEPTOR_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/edge/connection/connection_pacer.h"
#include "server/edge/connection/listening_socket.h"
#include "server/edge/connection/open_connections.h"
#include "server/edge/connection/peer_address.h"
#include "server/edge/connection/peer_guard.h"
#include "server/edge/connection/resident_memory.h"
#include "server/edge/connection/unproven_bytes.h"

namespace timecache::server {

// Replaces gRPC 1.51's own listener, which accepts connections without a limit,
// and never accepts one again after the process has once run out of file
// descriptors.
//
// Connections of an address beyond its rate wait before TLS or HTTP/2 starts,
// and connections that are closed meanwhile cost gRPC nothing.
//
// Listen on all addresses, build the server, Start, ..., Stop, shut the server
// down. By one thread, but for the counts. Costs a thread, and a few system
// calls a connection.
class ConnectionAcceptor {
 public:
  // Connections that are accepted from one socket before the others have their
  // turn.
  static constexpr int kMaxAcceptsPerTurn = 64;
  // The pause in accepting once the process has no file descriptor left.
  static constexpr absl::Duration kPause = absl::Milliseconds(100);

  struct Limits {
    // Beyond it a connection is closed at once.
    size_t max_connections;
    // Connections a second of one address.
    int pace;
    // As UnprovenBytes.
    int64_t max_unproven_bytes;
  };
  explicit ConnectionAcceptor(const Limits& limits);
  ~ConnectionAcceptor();
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // As ListeningSocket::Open. Its connections use `credentials`.
  absl::Status Listen(const std::string& address,
                      std::shared_ptr<grpc::ServerCredentials> credentials,
                      grpc::ServerBuilder* builder);
  // With the ports that were taken, in the order of Listen.
  std::vector<std::string> addresses() const;

  // Starts to accept connections; the builder's server has started.
  void Start();
  // Stops accepting and listening.
  void Stop();

  // As OpenConnections.
  void Cut(const PeerEndpoint& peer) { connections_.Cut(peer); }
  void CutSilent(std::chrono::milliseconds silent) {
    connections_.CutSilent(silent);
  }

  std::vector<OpenConnections::Listed> List(uint64_t after, size_t most) const {
    return connections_.List(after, most);
  }
  bool Close(uint64_t id) { return connections_.Close(id); }
  std::shared_ptr<ConnectionUse> UseOf(const PeerEndpoint& peer) const {
    return connections_.UseOf(peer);
  }

  size_t max() const { return connections_.max(); }
  size_t open() const { return connections_.Count(); }
  // Beyond max.
  uint64_t refused() const { return connections_.refused(); }
  const ConnectionPacer& pacer() const { return pacer_; }
  PeerGuard& guard() { return guard_; }
  const PeerGuard& guard() const { return guard_; }

 private:
  struct Listener {
    ListeningSocket socket;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  };

  struct ListeningFd {
    int fd;
    Listener* listener;
  };

  // Wakes the thread to check at once. From any thread.
  void Wake();
  void Run();
  bool AcceptSome(size_t listening);
  void Admit(PacedConnection connection);
  void AdmitDue();
  void HandOver(PacedConnection connection);
  void CutExcess();
  // For poll: milliseconds until a waiting connection is due, or unproven
  // connections are to be checked; or -1.
  int WaitMs(bool may_look) const;

  OpenConnections connections_;
  ConnectionPacer pacer_;
  const ResidentMemory memory_;
  UnprovenBytes unproven_;
  PeerGuard guard_{&pacer_, &connections_, &unproven_, [this] { Wake(); }};
  std::vector<Listener> listeners_;
  std::vector<ListeningFd> listening_;
  // Readable when there is work, or when it is to stop.
  const int wake_fd_;
  std::atomic<bool> stopping_{false};
  UnprovenBytes::Time looked_at_;
  std::thread thread_;
};

}  // namespace timecache::server

#endif  // TIMECACHED_SERVER_EDGE_CONNECTION_CONNECTION_ACCEPTOR_H_

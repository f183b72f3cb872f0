// Takes connections, as many as may be, and hands them to gRPC.

#ifndef TIMECACHED_SERVER_SERVICE_CONNECTION_ACCEPTOR_H_
#define TIMECACHED_SERVER_SERVICE_CONNECTION_ACCEPTOR_H_

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/service/listening_socket.h"
#include "server/service/open_connections.h"

namespace timecache {

// In place of gRPC 1.51's own listener, which takes connections without a
// limit, and never takes one again after the process was once out of file
// descriptors.
//
// Listen on all addresses, build the server, Start, ..., Stop, shut the server
// down. By one thread, but for the counts. Costs a thread, and a few system
// calls a connection.
class ConnectionAcceptor {
 public:
  // Connections that are taken from one socket, until the others have their
  // turn.
  static constexpr int kMaxAcceptsPerTurn = 64;
  // How long nothing is taken once the process has no file descriptor left.
  static constexpr absl::Duration kPause = absl::Milliseconds(100);

  // One more than `max_connections` is closed at once.
  explicit ConnectionAcceptor(size_t max_connections);
  ~ConnectionAcceptor();
  ConnectionAcceptor(const ConnectionAcceptor&) = delete;
  ConnectionAcceptor& operator=(const ConnectionAcceptor&) = delete;

  // As ListeningSocket::Open. What comes in speaks as `credentials` say.
  absl::Status Listen(const std::string& address,
                      std::shared_ptr<grpc::ServerCredentials> credentials,
                      grpc::ServerBuilder* builder);
  // With the ports that were taken, in the order of Listen.
  std::vector<std::string> addresses() const;

  // Begins to take connections; the builder's server has started.
  void Start();
  // Takes no more, and listens no longer.
  void Stop();

  size_t max() const { return connections_.max(); }
  size_t open() const { return connections_.Count(); }
  uint64_t refused() const { return connections_.refused(); }

 private:
  struct Listener {
    ListeningSocket socket;
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  };

  void Run();
  bool AcceptSome(int listening_fd, Listener* listener);
  void HandOver(int listening_fd, int fd, Listener* listener);

  OpenConnections connections_;
  std::vector<Listener> listeners_;
  // Readable once Stop was called.
  int stop_fd_;
  std::thread thread_;
};

}  // namespace timecache

#endif  // TIMECACHED_SERVER_SERVICE_CONNECTION_ACCEPTOR_H_

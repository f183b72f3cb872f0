#include "server/service/connection_acceptor.h"

#include <grpcpp/support/byte_buffer.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "server/engine/check.h"

namespace timecache {
namespace {

// Whether accept may work again with the next connection, or when it is asked
// again: what else goes wrong needs file descriptors or memory, which others
// must first give back.
bool IsPassing(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
      return false;
    default:
      // The connection is gone, or its network was.
      return true;
  }
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(size_t max_connections)
    : connections_(max_connections),
      stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TIMECACHED_CHECK(stop_fd_ >= 0);
}

ConnectionAcceptor::~ConnectionAcceptor() {
  Stop();
  close(stop_fd_);
}

absl::Status ConnectionAcceptor::Listen(
    const std::string& address,
    std::shared_ptr<grpc::ServerCredentials> credentials,
    grpc::ServerBuilder* builder) {
  absl::StatusOr<ListeningSocket> socket = ListeningSocket::Open(address);
  if (!socket.ok()) return socket.status();
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  listeners_.push_back({*std::move(socket),
                        builder->experimental().AddExternalConnectionAcceptor(
                            Type::FROM_FD, std::move(credentials))});
  return absl::OkStatus();
}

std::vector<std::string> ConnectionAcceptor::addresses() const {
  std::vector<std::string> addresses;
  for (const Listener& listener : listeners_)
    addresses.push_back(listener.socket.address());
  return addresses;
}

void ConnectionAcceptor::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ConnectionAcceptor::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_fd_, 1);
    thread_.join();
  }
  listeners_.clear();
}

void ConnectionAcceptor::Run() {
  std::vector<pollfd> polled = {{stop_fd_, POLLIN, 0}};
  std::vector<Listener*> owners = {nullptr};
  for (Listener& listener : listeners_) {
    for (const int fd : listener.socket.fds()) {
      polled.push_back({fd, POLLIN, 0});
      owners.push_back(&listener);
    }
  }
  for (;;) {
    poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    bool paused = false;
    for (size_t i = 1; i < polled.size(); ++i) {
      if (polled[i].revents == 0) continue;
      paused = !AcceptSome(polled[i].fd, owners[i]) || paused;
    }
    if (paused) {
      poll(polled.data(), 1,
           static_cast<int>(absl::ToInt64Milliseconds(kPause)));
    }
  }
}

// False if nothing can be taken at present.
bool ConnectionAcceptor::AcceptSome(int listening_fd, Listener* listener) {
  for (int i = 0; i < kMaxAcceptsPerTurn; ++i) {
    const int fd =
        accept4(listening_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      HandOver(listening_fd, fd, listener);
    } else if (errno == EAGAIN) {
      return true;
    } else if (!IsPassing(errno)) {
      return false;
    }
  }
  return true;
}

void ConnectionAcceptor::HandOver(int listening_fd, int fd,
                                  Listener* listener) {
  if (!connections_.Add(fd)) {
    close(fd);
    return;
  }
  const int on = 1;
  // Fails on a unix socket, which has no delay.
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters to;
  to.listener_fd = listening_fd;
  to.fd = fd;
  listener->acceptor->HandleNewConnection(&to);
}

}  // namespace timecache

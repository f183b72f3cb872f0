#include "server/edge/connection/connection_acceptor.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/base/config.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/base/check.h"
#include "server/base/memory_budget.h"

namespace timecache::server {
namespace {

// An address may be charged while its connections wait, but not credited: so a
// check that comes early is harmless.
constexpr int64_t kMaxWaitMs = 1'000;

// Whether accept may succeed with the next connection, or on a retry: other
// errors need file descriptors or memory, which must be freed first.
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

std::chrono::steady_clock::time_point Now() {
  return std::chrono::steady_clock::now();
}

// Memory of the process beyond what the engine accounts for. Unknown under a
// sanitizer: its shadow grows by several times what is used.
int64_t UnaccountedBytes(const ResidentMemory& memory) {
#if defined(ABSL_HAVE_THREAD_SANITIZER) || defined(ABSL_HAVE_ADDRESS_SANITIZER)
  static_cast<void>(memory);
  return 0;
#else
  return memory.Bytes() - MemoryBudget::Process().used_bytes();
#endif
}

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(const Limits& limits)
    : connections_(limits.max_connections),
      pacer_(limits.pace),
      unproven_(limits.max_unproven_bytes, &connections_,
                [this] { return UnaccountedBytes(memory_); }),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  TIMECACHED_CHECK(wake_fd_ >= 0);
}

ConnectionAcceptor::~ConnectionAcceptor() {
  Stop();
  close(wake_fd_);
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
  for (const Listener& listener : listeners_) {
    addresses.push_back(listener.socket.address());
  }
  return addresses;
}

void ConnectionAcceptor::Start() {
  thread_ = std::thread([this] { Run(); });
}

void ConnectionAcceptor::Stop() {
  if (thread_.joinable()) {
    stopping_ = true;
    Wake();
    thread_.join();
  }
  listeners_.clear();
}

void ConnectionAcceptor::Wake() { eventfd_write(wake_fd_, 1); }

void ConnectionAcceptor::Run() {
  std::vector<pollfd> polled = {{wake_fd_, POLLIN, 0},
                                {unproven_.fd(), POLLIN, 0}};
  const size_t first_listening = polled.size();
  for (Listener& listener : listeners_) {
    for (const int fd : listener.socket.fds()) {
      polled.push_back({fd, POLLIN, 0});
      listening_.push_back({fd, &listener});
    }
  }
  while (!stopping_) {
    const bool may_look = Now() >= looked_at_ + UnprovenBytes::kLookInterval;
    polled[1].fd = may_look ? unproven_.fd() : -1;
    poll(polled.data(), polled.size(), WaitMs(may_look));
    eventfd_t woken = 0;
    if (polled[0].revents != 0) eventfd_read(wake_fd_, &woken);
    if (stopping_) break;
    bool paused = false;
    for (size_t i = 0; i < listening_.size(); ++i) {
      if (polled[first_listening + i].revents != 0) {
        paused = !AcceptSome(i) || paused;
      }
    }
    AdmitDue();
    if (polled[1].revents != 0 || (may_look && unproven_.any())) CutExcess();
    if (paused) {
      poll(polled.data(), 1,
           static_cast<int>(absl::ToInt64Milliseconds(kPause)));
    }
  }
  for (const PacedConnection& waiting : pacer_.TakeAll()) close(waiting.fd);
}

int ConnectionAcceptor::WaitMs(bool may_look) const {
  auto due = pacer_.NextDue();
  const auto look = may_look ? unproven_.NextLook()
                             : looked_at_ + UnprovenBytes::kLookInterval;
  if (look.has_value()) due = due.has_value() ? std::min(*due, *look) : look;
  if (!due.has_value()) return -1;
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(*due - Now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, kMaxWaitMs));
}

// False if no connection can be accepted at present.
bool ConnectionAcceptor::AcceptSome(size_t listening) {
  for (int i = 0; i < kMaxAcceptsPerTurn; ++i) {
    sockaddr_storage from = {};
    socklen_t size = sizeof(from);
    const int fd =
        accept4(listening_[listening].fd, reinterpret_cast<sockaddr*>(&from),
                &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Admit({fd, listening, PeerEndpoint::Of(from)});
    } else if (errno == EAGAIN) {
      return true;
    } else if (!IsPassing(errno)) {
      return false;
    }
  }
  return true;
}

void ConnectionAcceptor::Admit(PacedConnection connection) {
  if (!connections_.Add(connection.fd, connection.peer)) {
    close(connection.fd);
    return;
  }
  switch (pacer_.Offer(connection, Now(), OpenConnections::IsClosed)) {
    case ConnectionPacer::Verdict::kNow:
      return HandOver(connection);
    case ConnectionPacer::Verdict::kWait:
      return;
    case ConnectionPacer::Verdict::kRefuse:
      close(connection.fd);
      return;
  }
}

void ConnectionAcceptor::AdmitDue() {
  const ConnectionPacer::Due due =
      pacer_.TakeDue(Now(), OpenConnections::IsClosed);
  for (const PacedConnection& gone : due.gone) close(gone.fd);
  for (const PacedConnection& taken : due.taken) HandOver(taken);
}

// Unproven connections have sent too much: the addresses of those that sent
// most wait before their next connection, as if their calls had been read.
void ConnectionAcceptor::CutExcess() {
  looked_at_ = Now();
  for (const auto& [peer, bytes] : unproven_.Look(looked_at_)) {
    guard_.CutUnproven(peer, bytes, looked_at_);
  }
}

void ConnectionAcceptor::HandOver(PacedConnection connection) {
  if (!connection.peer.empty()) {
    unproven_.Add(connection.fd, connection.peer, Now());
  }
  const ListeningFd& listening = listening_[connection.listener];
  const int on = 1;
  // Fails on a unix socket, which has no delay.
  setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters to;
  to.listener_fd = listening.fd;
  to.fd = connection.fd;
  listening.listener->acceptor->HandleNewConnection(&to);
}

}  // namespace timecache::server

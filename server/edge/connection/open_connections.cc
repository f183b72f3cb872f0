#include "server/edge/connection/open_connections.h"

#include <fcntl.h>
#include <linux/sockios.h>
// Not netinet/tcp.h, whose tcp_info ends before the count of bytes.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/base/check.h"

namespace timecache::server {
namespace {

// 0 if it is not open, or no socket.
ino_t InodeOf(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISSOCK(info.st_mode) ? info.st_ino : 0;
}

// A connection's state in tcp_info after Abort.
constexpr int kTcpClosed = 7;

// None if it is not TCP.
std::optional<tcp_info> TcpInfo(int fd) {
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
    return std::nullopt;
  }
  return info;
}

// As shutdown, but for TCP the kernel also drops pending data in both
// directions: otherwise gRPC would continue with received calls.
void Abort(int fd) {
  const sockaddr none = {.sa_family = AF_UNSPEC, .sa_data = {}};
  if (connect(fd, &none, sizeof(none)) != 0) shutdown(fd, SHUT_RDWR);
}

// The process at the other end, as far as the kernel says.
std::string UnixPeer(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
                 peer.pid > 0
             ? absl::StrCat("unix:pid=", peer.pid)
             : "unix";
}

}  // namespace

OpenConnections::OpenConnections(size_t max_connections)
    : max_(max_connections),
      unused_(eventfd(0, EFD_CLOEXEC)),
      pinned_(eventfd(0, EFD_CLOEXEC)) {
  TIMECACHED_CHECK(unused_ >= 0 && pinned_ >= 0);
}

OpenConnections::~OpenConnections() {
  close(unused_);
  close(pinned_);
}

template <typename Act>
void OpenConnections::WithOpen(int fd, const Act& act) const {
  const ino_t inode = connections_[static_cast<size_t>(fd)].inode;
  if (inode == 0 || dup3(fd, pinned_, O_CLOEXEC) < 0) return;
  if (InodeOf(pinned_) == inode) act(pinned_);
  dup3(unused_, pinned_, O_CLOEXEC);
}

bool OpenConnections::Add(int fd, const PeerEndpoint& peer) {
  const ino_t inode = InodeOf(fd);
  absl::MutexLock lock(&mu_);
  const auto place = static_cast<size_t>(fd);
  if (place >= connections_.size()) connections_.resize(place + 1);
  // The number was another connection's, which is gone.
  Clear(place);
  if (count_ >= max_) Recount();
  if (count_ >= max_) {
    ++refused_;
    return false;
  }
  connections_[place] = {inode,
                         peer,
                         ++last_id_,
                         std::chrono::steady_clock::now(),
                         std::make_shared<ConnectionUse>(),
                         false};
  if (!peer.empty()) fds_[peer] = fd;
  ++count_;
  return true;
}

void OpenConnections::Clear(size_t fd) const {
  Connection& connection = connections_[fd];
  if (connection.inode == 0) return;
  const auto it = fds_.find(connection.peer);
  // The peer may have connected from the same port again.
  if (it != fds_.end() && it->second == static_cast<int>(fd)) fds_.erase(it);
  connection = {};
  --count_;
}

bool OpenConnections::IsGone(const PeerEndpoint& peer) const {
  absl::MutexLock lock(&mu_);
  const auto it = fds_.find(peer);
  if (it == fds_.end()) return false;
  bool gone = true;
  WithOpen(it->second, [&gone](int fd) { gone = IsClosed(fd); });
  return gone;
}

void OpenConnections::Cut(const PeerEndpoint& peer) {
  absl::MutexLock lock(&mu_);
  const auto it = fds_.find(peer);
  if (it != fds_.end()) WithOpen(it->second, Abort);
}

std::optional<int64_t> OpenConnections::BytesReceived(
    const PeerEndpoint& peer) const {
  absl::MutexLock lock(&mu_);
  std::optional<tcp_info> info;
  const auto it = fds_.find(peer);
  if (it != fds_.end()) {
    WithOpen(it->second, [&info](int fd) { info = TcpInfo(fd); });
  }
  if (!info.has_value() || info->tcpi_state == kTcpClosed) return std::nullopt;
  return static_cast<int64_t>(info->tcpi_bytes_received);
}

std::vector<OpenConnections::Listed> OpenConnections::List(uint64_t after,
                                                           size_t most) const {
  absl::MutexLock lock(&mu_);
  std::vector<std::pair<uint64_t, int>> fds;
  for (size_t fd = 0; fd < connections_.size(); ++fd) {
    const Connection& connection = connections_[fd];
    if (connection.inode != 0 && connection.id > after && !connection.closing) {
      fds.emplace_back(connection.id, static_cast<int>(fd));
    }
  }
  std::sort(fds.begin(), fds.end());
  std::vector<Listed> listed;
  for (const auto& [id, fd] : fds) {
    if (listed.size() == most) break;
    const Connection& connection = connections_[static_cast<size_t>(fd)];
    if (InodeOf(fd) != connection.inode) continue;
    Listed& next = listed.emplace_back();
    next = {id, connection.peer.ToString(), connection.since, connection.use};
    if (!next.peer.empty()) continue;
    next.peer = "unix";
    WithOpen(fd, [&next](int open) { next.peer = UnixPeer(open); });
  }
  return listed;
}

bool OpenConnections::Close(uint64_t id) {
  absl::MutexLock lock(&mu_);
  const auto it = std::find_if(
      connections_.begin(), connections_.end(), [id](const Connection& each) {
        return each.inode != 0 && each.id == id && !each.closing;
      });
  if (it == connections_.end()) return false;
  WithOpen(static_cast<int>(it - connections_.begin()), [it](int fd) {
    Abort(fd);
    it->closing = true;
  });
  return it->closing;
}

std::shared_ptr<ConnectionUse> OpenConnections::UseOf(
    const PeerEndpoint& peer) const {
  absl::MutexLock lock(&mu_);
  const auto it = fds_.find(peer);
  return it == fds_.end() ? nullptr
                          : connections_[static_cast<size_t>(it->second)].use;
}

size_t OpenConnections::Count() const {
  absl::MutexLock lock(&mu_);
  Recount();
  return count_;
}

uint64_t OpenConnections::refused() const {
  absl::MutexLock lock(&mu_);
  return refused_;
}

void OpenConnections::CutSilent(std::chrono::milliseconds silent) {
  absl::MutexLock lock(&mu_);
  for (size_t place = 0; place < connections_.size(); ++place) {
    WithOpen(static_cast<int>(place), [silent](int fd) {
      const std::optional<tcp_info> info = TcpInfo(fd);
      int unsent = 0;
      if (info.has_value() && ioctl(fd, SIOCOUTQ, &unsent) == 0 &&
          unsent == 0 &&
          std::chrono::milliseconds(info->tcpi_last_data_recv) > silent) {
        shutdown(fd, SHUT_RDWR);
      }
    });
  }
}

void OpenConnections::Recount() const {
  const absl::Time now = absl::Now();
  if (now - recounted_ < kRecountInterval && now >= recounted_) return;
  recounted_ = now;
  for (size_t fd = 0; fd < connections_.size(); ++fd) {
    const ino_t inode = connections_[fd].inode;
    if (inode != 0 && InodeOf(static_cast<int>(fd)) != inode) Clear(fd);
  }
}

bool OpenConnections::IsClosed(int fd) {
  pollfd polled = {fd, POLLRDHUP, 0};
  return poll(&polled, 1, 0) > 0 && polled.revents != 0;
}

}  // namespace timecache::server

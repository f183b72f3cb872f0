#include "server/edge/connection/unproven_bytes.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "server/base/check.h"

namespace timecache::server {
namespace {

// Most connections that one Look processes.
constexpr int kMaxEvents = 1'024;
// How often all connections that count are checked in any case.
constexpr std::chrono::seconds kLookAtAll{1};

}  // namespace

UnprovenBytes::UnprovenBytes(int64_t max_bytes,
                             const OpenConnections* connections,
                             std::function<int64_t()> memory_bytes)
    : max_bytes_(max_bytes),
      open_(connections),
      memory_bytes_(std::move(memory_bytes)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  TIMECACHED_CHECK(epoll_ >= 0);
}

UnprovenBytes::~UnprovenBytes() { close(epoll_); }

void UnprovenBytes::Add(int fd, const PeerEndpoint& peer, Time now) {
  const auto place = static_cast<size_t>(fd);
  absl::MutexLock lock(&mu_);
  if (place >= by_fd_.size()) by_fd_.resize(place + 1);
  // The connection that had this number is gone, and so is the one that had
  // this address.
  for (const PeerEndpoint& before : {by_fd_[place], peer}) {
    const auto it = connections_.find(before);
    if (it != connections_.end()) Forget(it);
  }
  by_fd_[place] = peer;
  connections_.emplace(peer, Connection{.fd = fd, .began = now});
  // An edge for each arrival. By the time of the check, gRPC has often read the
  // data, and the socket is not readable, but it is writable.
  epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET,
                       .data = {.fd = fd}};
  // If it fails, for lack of memory, the connection is not checked.
  (void)epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
}

void UnprovenBytes::Prove(const PeerEndpoint& peer) {
  absl::MutexLock lock(&mu_);
  const auto it = connections_.find(peer);
  if (it == connections_.end()) return;
  // It may be closed by now, and its number may belong to a file that is not
  // watched.
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, it->second.fd, nullptr);
  Forget(it);
}

void UnprovenBytes::CountAnswered(const PeerEndpoint& peer, int64_t bytes) {
  absl::MutexLock lock(&mu_);
  const auto it = connections_.find(peer);
  if (it == connections_.end()) return;
  Connection& connection = it->second;
  connection.answered += bytes;
  SetBytes(connection.bytes - bytes, &connection);
}

void UnprovenBytes::Forget(Connections::iterator it) {
  SetBytes(0, &it->second);
  by_fd_[static_cast<size_t>(it->second.fd)] = PeerEndpoint();
  connections_.erase(it);
}

void UnprovenBytes::SetBytes(int64_t bytes, Connection* connection) {
  if (bytes <= kFreeBytes) bytes = 0;
  by_bytes_.erase({connection->bytes, connection->fd});
  sum_bytes_ += bytes - connection->bytes;
  connection->bytes = bytes;
  if (bytes > 0) by_bytes_.emplace(bytes, connection->fd);
  any_.store(!by_bytes_.empty(), std::memory_order_relaxed);
}

bool UnprovenBytes::Count(Connections::iterator it, Time now) {
  Connection& connection = it->second;
  const std::optional<int64_t> received = open_->BytesReceived(it->first);
  if (!received.has_value()) {
    Forget(it);
    return false;
  }
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(now - connection.began);
  SetBytes(
      *received - connection.answered - kFreeBytesPerSecond * seconds.count(),
      &connection);
  return true;
}

bool UnprovenBytes::HasGrown() {
  if (by_bytes_.empty()) {
    memory_before_ = std::nullopt;
    return false;
  }
  const int64_t now = memory_bytes_();
  if (!memory_before_.has_value()) memory_before_ = now;
  return now - *memory_before_ > max_bytes_;
}

void UnprovenBytes::CountAll(Time now) {
  looked_at_ = now;
  const std::vector<std::pair<int64_t, int>> all(by_bytes_.begin(),
                                                 by_bytes_.end());
  for (const auto& [bytes, fd] : all) {
    Count(connections_.find(by_fd_[static_cast<size_t>(fd)]), now);
  }
}

std::optional<UnprovenBytes::Time> UnprovenBytes::NextLook() const {
  if (!any()) return std::nullopt;
  absl::MutexLock lock(&mu_);
  return looked_at_ + kLookAtAll;
}

std::vector<UnprovenBytes::Excess> UnprovenBytes::Look(Time now) {
  std::array<epoll_event, kMaxEvents> events;
  const int count = epoll_wait(epoll_, events.data(), kMaxEvents, 0);
  absl::MutexLock lock(&mu_);
  for (int i = 0; i < count; ++i) {
    const auto fd = static_cast<size_t>(events[static_cast<size_t>(i)].data.fd);
    const auto it = connections_.find(by_fd_[fd]);
    if (it != connections_.end()) Count(it, now);
  }
  // Some connections that count may be gone.
  if (sum_bytes_ > max_bytes_ || now >= looked_at_ + kLookAtAll) CountAll(now);
  const int64_t most = HasGrown() ? 0 : max_bytes_;
  std::vector<Excess> excess;
  while (sum_bytes_ > most) {
    const auto [bytes, fd] = *by_bytes_.rbegin();
    const auto it = connections_.find(by_fd_[static_cast<size_t>(fd)]);
    excess.push_back({it->first, bytes});
    (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    Forget(it);
  }
  return excess;
}

}  // namespace timecache::server

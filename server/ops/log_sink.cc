#include "server/ops/log_sink.h"

#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace timecache::server {
namespace {

bool TakesMore(int fd) {
  pollfd poll_fd = {fd, POLLOUT, 0};
  return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT) != 0;
}

// Without waiting: a pipe that takes anything takes PIPE_BUF, and a socket is
// asked. The descriptor itself stays as it is, because others share it.
ssize_t WriteSome(int fd, const std::string& bytes) {
  if (!TakesMore(fd)) {
    errno = EAGAIN;
    return -1;
  }
  const size_t size = std::min(bytes.size(), size_t{PIPE_BUF});
  const ssize_t sent =
      send(fd, bytes.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return sent;
  return write(fd, bytes.data(), size);
}

}  // namespace

void LogSink::Write(std::string line) {
  absl::MutexLock lock(&mu_);
  const uint64_t dropped = this->dropped();
  const bool reported =
      dropped == reported_ || WriteLine(describe_(dropped - reported_));
  if (reported) reported_ = dropped;
  if (!reported || !WriteLine(std::move(line))) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
  }
}

// False if nothing of the line was written; else all of it is or will be.
bool LogSink::WriteLine(std::string line) {
  if (!WriteRest()) return false;
  const size_t size = line.size() + 1;
  rest_ = std::move(line);
  rest_.push_back('\n');
  if (WriteRest() || rest_.size() < size) return true;
  rest_.clear();
  return false;
}

bool LogSink::WriteRest() {
  while (!rest_.empty()) {
    const ssize_t written = WriteSome(fd_, rest_);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    rest_.erase(0, static_cast<size_t>(written));
  }
  return true;
}

}  // namespace timecache::server

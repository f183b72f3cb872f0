#include "server/ops/http_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace timecache::server {

void HttpStream::Cut() { shutdown(fd_, SHUT_RDWR); }

bool HttpStream::Wait(short events) {  // NOLINT(runtime/int)
  for (;;) {
    const auto age =
        std::chrono::floor<std::chrono::milliseconds>(Clock::now() - start_);
    if (age >= limits_.max_time) return false;
    if (age >= limits_.max_time_crowded && limits_.crowded()) return false;
    // Then waiting connections are checked again.
    const auto next =
        age < limits_.max_time_crowded
            ? limits_.max_time_crowded
            : std::min(age + limits_.max_time_crowded, limits_.max_time);
    pollfd poll_fd = {fd_, events, 0};
    const int ready = poll(&poll_fd, 1, static_cast<int>((next - age).count()));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

ssize_t HttpStream::read(char* to, size_t size) {
  while (begin_ == end_) {
    const ssize_t got = recv(fd_, buffer_.data(),
                             std::min(buffer_.size(), left_), MSG_DONTWAIT);
    if (got > 0) {
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      left_ -= end_;
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR) ||
               !Wait(POLLIN)) {
      return got == 0 ? 0 : -1;
    }
  }
  const size_t count = std::min(size, end_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, count);
  begin_ += count;
  return static_cast<ssize_t>(count);
}

ssize_t HttpStream::write(const char* from, size_t size) {
  for (;;) {
    const ssize_t sent = send(fd_, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if ((errno != EAGAIN && errno != EINTR) || !Wait(POLLOUT)) return -1;
  }
}

// Never called.
void HttpStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void HttpStream::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

}  // namespace timecache::server
